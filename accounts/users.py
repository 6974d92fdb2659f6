"""Create users, set their passwords and erase them. The only module that writes User rows."""

import datetime as dt
import json

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import tokens
from accounts.models import LinkPurpose, User
from accounts.security_log import log_account_event
from events import origins


class NameIsTaken(Exception):
    """Another account has this username or email address; `field` is "username" or "email"."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def create_user(
    *,
    username: str,
    now: dt.datetime,
    password: str | None = None,
    email: str = "",
    name: str = "",
    is_staff: bool = False,
) -> User:
    """Create an account. Without a password, its user logs in through a link."""
    username, email = username.strip(), email.strip()
    _check_names_are_free(username, email)
    try:
        with transaction.atomic():
            user = User.objects.create_user(
                username, email=email, password=password, name=name.strip(), is_staff=is_staff, date_joined=now
            )
            log_account_event(what="created", user=user, by=None, now=now, is_operator=is_staff)
            return user
    except IntegrityError:
        # A concurrent request created an account with the same name.
        _check_names_are_free(username, email)
        raise


def set_password(*, user: User, password: str, now: dt.datetime, is_reset: bool = False) -> None:
    """Set a password. This ends all sessions of the user and revokes their unused links."""
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        tokens.revoke_links(user=user, now=now)
        what = "password_reset" if is_reset else "password_changed"
        log_account_event(what=what, user=user, by=user, now=now)


def set_password_by_link(*, token: str, password: str, now: dt.datetime) -> User:
    """Use the link up and set the password, in one transaction."""
    with transaction.atomic():
        user = tokens.use_link(token=token, purpose=LinkPurpose.NEW_PASSWORD, now=now)
        set_password(user=user, password=password, now=now, is_reset=True)
    return user


def save_work_keys(*, user: User, keys: dict[str, str]) -> None:
    """Save the keys that differ from the defaults; an empty dict restores the defaults."""
    user.work_keys = json.dumps(keys) if keys else ""
    user.save(update_fields=["work_keys"])


def save_break_minutes(*, user: User, minutes: int) -> None:
    user.break_minutes = minutes
    user.save(update_fields=["break_minutes"])


def erase_user(*, user: User, now: dt.datetime) -> None:
    """Remove personal data and credentials. The row stays, because labels refer to it."""
    with transaction.atomic():
        user.username, user.email, user.name = f"erased-{user.pk}", "", ""
        user.is_active = user.is_staff = user.is_superuser = False
        user.last_login, user.erased_at = None, now
        user.set_unusable_password()
        user.save()
        tokens.revoke_links(user=user, now=now)
        EmailAddress.objects.filter(user=user).delete()
        Authenticator.objects.filter(user=user).delete()
        origins.erase_origins(user_id=user.pk, now=now)


def _check_names_are_free(username: str, email: str) -> None:
    if User.objects.filter(username__iexact=username).exists():
        raise NameIsTaken("username", _("The username “%(name)s” is taken. Choose another.") % {"name": username})
    if email and User.objects.filter(email__iexact=email).exists():
        raise NameIsTaken("email", _("An account with this email address exists. Log in with it instead."))
