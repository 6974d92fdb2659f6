"""Celery tasks of `accounts`."""

import structlog
from celery import shared_task
from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError as BrokerError

from accounts import sessions
from accounts.models import ApiToken, User
from accounts.security_log import EVENT_LABELS

logger = structlog.get_logger(__name__)


@shared_task(name="accounts.forget_ended_sessions")
def delete_expired_sessions() -> None:
    sessions.delete_expired_sessions(now=timezone.now())


@shared_task(name="accounts.mail_new_token")
def mail_new_token(token_id: int) -> None:
    """Tell a person that an API token of theirs was created."""
    token = ApiToken.objects.select_related("user").filter(pk=token_id).first()
    if token is None or not token.user.email:
        return
    lines = [
        _("An API token was created for your Stepmark account %(user)s.") % {"user": token.user.username},
        _("Scopes: %(scopes)s.") % {"scopes": ", ".join(token.scopes)},
        _("If this was not you, revoke it and change your password: %(url)s")
        % {"url": settings.ORIGIN + reverse("tokens")},
    ]
    body = "\n\n".join(lines) + "\n"
    EmailMessage(subject=_("New API token"), body=body, to=[token.user.email]).send()


def request_token_mail(token_id: int) -> None:
    """Have the worker send the mail. Nothing is mailed without a mail server or a broker."""
    if settings.EMAIL_HOST:
        try:
            mail_new_token.delay(token_id)
        except BrokerError:
            logger.warning("token_mail_not_sent", token=token_id)


@shared_task(name="accounts.mail_account_change")
def mail_account_change(user_id: int, what: str, address: str) -> None:
    """Tell a person that something about their login has changed."""
    user = User.objects.filter(pk=user_id, erased_at=None).first()
    if user is None:
        return
    label = str(EVENT_LABELS[f"account.{what}"])
    lines = [
        _("Your Stepmark account %(user)s: %(what)s.") % {"user": user.username, "what": label},
        _("If this was not you, change your password and tell a project owner: %(url)s")
        % {"url": settings.ORIGIN + reverse("mfa_index")},
    ]
    EmailMessage(subject=label, body="\n\n".join(lines) + "\n", to=[address]).send()


def request_account_mail(*, user: User, what: str, address: str = "") -> None:
    """Have the worker send the mail, to the user's address or to the given one."""
    address = address or user.email
    if settings.EMAIL_HOST and address:
        try:
            mail_account_change.delay(user.pk, what, address)
        except BrokerError:
            logger.warning("account_mail_not_sent", user=user.pk, what=what)
