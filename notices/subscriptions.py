"""Who gets which notices: webhooks of a project, and the mail choices of its leads. Only this module writes them.

The secret of a webhook is derived from SECRET_KEY and a random key, so a copy of the database cannot sign notices. With
another SECRET_KEY, all webhooks have other secrets and must be created again.
"""

import base64
import datetime as dt
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

import outbound
from accounts import tokens
from accounts.models import User
from events import audit_log
from labeling.models import Project, Rater
from notices.models import MailChoice, Notice, Webhook
from people import roles
from people.models import Membership
from people.roles import Action

MAX_WEBHOOKS = 10
CORRECTION = "correction.asked"  # the notice that also goes to the annotator
_RECOGNIZABLE = "whsec_"  # by secret scanners


class TooManyWebhooks(Exception):
    """The project already has the maximum number of webhooks."""

    def __init__(self) -> None:
        super().__init__(_("A project can have up to %(n)d webhooks. Delete one first.") % {"n": MAX_WEBHOOKS})


def can_send_mail() -> bool:
    """Whether the operator has configured a mail server."""
    return bool(settings.EMAIL_HOST)


def list_webhooks(project: Project) -> QuerySet[Webhook]:
    return Webhook.objects.filter(project=project, deleted_at=None).order_by("pk")


def create_webhook(
    *, project: Project, address: str, kinds: Collection[str], by: User, now: dt.datetime
) -> tuple[Webhook, str]:
    """Return the webhook and its secret. Raise outbound.AddressRefused or TooManyWebhooks."""
    outbound.check_address(address)
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if list_webhooks(project).count() >= MAX_WEBHOOKS:
            raise TooManyWebhooks
        webhook = Webhook.objects.create(
            project=project,
            address=address,
            kinds=sorted(kinds),
            key=tokens.generate_token(),
            made_by=by,
            made_at=now,
        )
        _log_event("webhook.made", webhook, by, now)
    return webhook, derive_secret(webhook)


def derive_secret(webhook: Webhook) -> str:
    digest = salted_hmac("notices.webhook", webhook.key, algorithm="sha256").digest()
    return _RECOGNIZABLE + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def delete_webhook(*, webhook: Webhook, by: User, now: dt.datetime) -> None:
    """Stop sending notices to a webhook, waiting ones included. The row stays for the delivery log."""
    with transaction.atomic():
        if Webhook.objects.filter(pk=webhook.pk, deleted_at=None).update(deleted_at=now):
            _log_event("webhook.deleted", webhook, by, now)


def find_mail_choice(membership: Membership) -> list[str]:
    choice = MailChoice.objects.filter(membership=membership).first()
    return list(choice.kinds) if choice else []


def choose_mail(*, membership: Membership, kinds: Collection[str], now: dt.datetime) -> None:
    """Choose which notices a member gets by email."""
    with transaction.atomic():
        MailChoice.objects.update_or_create(membership=membership, defaults={"kinds": sorted(kinds)})
        subject, detail = f"user:{membership.user_id}", {"kinds": sorted(kinds)}
        audit_log.log_event(
            what="member.notices_chosen",
            by=membership.user,
            now=now,
            project=membership.project_id,
            subject=subject,
            detail=detail,
        )


def list_mail_recipients(*, project_id: int, kind: str) -> list[Membership]:
    """Return the members who chose this notice, may still get it, and have an email address."""
    rows = Membership.objects.active().filter(project=project_id, mail_choice__kinds__contains=[kind])
    found = rows.exclude(user__email="").filter(user__is_active=True).select_related("user").order_by("pk")
    return [row for row in found if roles.membership_may(row, Action.NOTIFY)]


def list_receivers_of(notice: Notice) -> list[Membership]:
    """Return who gets this notice by email: those who chose it, and the annotator whom it asks for a correction."""
    chosen = list_mail_recipients(project_id=notice.project_id, kind=notice.kind)
    corrector = find_corrector(notice.content)
    return [*chosen, corrector] if corrector is not None and corrector not in chosen else chosen


def find_corrector(content: Mapping[str, Any]) -> Membership | None:
    """Return the annotator whom a notice asks for a correction, if they can get emails. They get it without choosing
    it."""
    if content["type"] != CORRECTION:
        return None
    asked = Rater.objects.filter(assignments=content["data"]["assignment"], user__is_active=True, removed_at=None)
    rows = Membership.objects.active().filter(project__slug=content["project"]["slug"], user__in=asked.values("user"))
    return rows.exclude(user__email="").select_related("user").first()


def _log_event(what: str, webhook: Webhook, by: User, now: dt.datetime) -> None:
    """Log the host only: the rest of an address can contain a secret."""
    detail = {"host": urlsplit(webhook.address).hostname, "kinds": webhook.kinds}
    subject = f"webhook:{webhook.pk}"
    audit_log.log_event(what=what, by=by, now=now, project=webhook.project_id, subject=subject, detail=detail)
