"""Second factors: authenticator apps, passkeys and recovery codes. allauth checks and stores them."""

import base64
import datetime as dt
import hashlib
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import sessions, tasks
from accounts.models import User
from accounts.security_log import log_account_event
from events import revocations

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

MAX_PASSKEY_NAME_LENGTH = 100
_Type = Authenticator.Type
# What allauth reports through its notification mails.
_NOTIFIED: dict[str, tuple[str, str]] = {
    "mfa/email/totp_activated": ("factor_added", _Type.TOTP),
    "mfa/email/totp_deactivated": ("factor_removed", _Type.TOTP),
    "mfa/email/webauthn_added": ("factor_added", _Type.WEBAUTHN),
    "mfa/email/webauthn_removed": ("factor_removed", _Type.WEBAUTHN),
    "mfa/email/recovery_codes_generated": ("factor_added", _Type.RECOVERY_CODES),
}


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth ships no types
    error_messages: ClassVar = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": gettext_lazy("This code is incorrect or was used before. Enter the newest code."),
    }

    def encrypt(self, text: str) -> str:
        """Encrypt the secret of a factor with SECRET_KEY, which is in no backup."""
        return _cipher(settings.SECRET_KEY).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        from cryptography.fernet import InvalidToken  # only for accounts with second factors

        for key in [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]:
            try:
                return _cipher(key).decrypt(encrypted_text.encode()).decode()
            except InvalidToken:
                continue
        # The database was restored under another SECRET_KEY, so no code matches.
        return base64.b32encode(hashlib.sha256(encrypted_text.encode()).digest()[:20]).decode()

    def get_totp_issuer(self) -> str:
        return "Stepmark"

    def generate_authenticator_name(self, user: AbstractBaseUser, type: Authenticator.Type) -> str:
        number = Authenticator.objects.filter(user_id=user.pk, type=type).count() + 1
        return _("Passkey") if number == 1 else _("Passkey %(number)d") % {"number": number}


@lru_cache(maxsize=4)
def _cipher(secret: str) -> "Fernet":
    from cryptography.fernet import Fernet

    key = hashlib.sha256(b"stepmark second factors\0" + secret.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


def list_factors(user: User) -> QuerySet[Authenticator]:
    """Return the factors that can be asked for after the password: apps and passkeys."""
    found: QuerySet[Authenticator] = Authenticator.objects.filter(user=user, type__in=[_Type.TOTP, _Type.WEBAUTHN])
    return found.order_by("pk")


def has_second_factor(user: User) -> bool:
    return list_factors(user).exists()


def find_users_with_factors(users: Iterable[User]) -> set[int]:
    """Return the ids of those users who have a second factor."""
    return set(Authenticator.objects.filter(user__in=list(users)).values_list("user_id", flat=True))


def log_notified_change(*, template_prefix: str, user: User, now: dt.datetime) -> None:
    """Log a change that allauth would mail, and notify the user."""
    if template_prefix not in _NOTIFIED:
        return
    what, kind = _NOTIFIED[template_prefix]
    with transaction.atomic():
        log_account_event(what=what, user=user, by=user, now=now, factor=str(kind))
        if what == "factor_removed":
            note_removal(user=user, now=now)
    tasks.request_account_mail(user=user, what=what)


def reset_factors(*, user: User, by: User | None, now: dt.datetime) -> None:
    """Delete the factors of a user who lost them, and end their sessions. The user is notified."""
    with transaction.atomic():
        Authenticator.objects.filter(user=user).delete()
        sessions.delete_sessions(user=user)
        log_account_event(what="factors_reset", user=user, by=by, now=now)
        note_removal(user=user, now=now)
        transaction.on_commit(partial(tasks.request_account_mail, user=user, what="factors_reset"))


def note_removal(*, user: User, now: dt.datetime) -> None:
    """Record which factors remain, so that a restored backup does not bring a removed one back."""
    remaining = sorted(Authenticator.objects.filter(user=user).values_list("pk", flat=True))
    account = revocations.compute_account_digest(user_id=user.pk, joined_at=user.date_joined)
    revocations.note_after_commit(what="factors", account=account, now=now, remaining=remaining)


def describe_remaining_codes(user: User) -> str:
    """Return how many recovery codes are left, "" if there are none."""
    row = Authenticator.objects.filter(user=user, type=_Type.RECOVERY_CODES).first()
    if row is None:
        return ""
    left = len(row.wrap().get_unused_codes())
    return ngettext("%(n)d code left", "%(n)d codes left", left) % {"n": left}
