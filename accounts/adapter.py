"""Adapt allauth: sign-up needs an invitation, and login adds no flash messages."""

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    error_messages: ClassVar = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": _("Incorrect username or password."),
        "email_password_mismatch": _("Incorrect email address or password."),
        "too_many_login_attempts": _("Too many attempts for this account. Wait five minutes, then try again."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False  # accounts are created through invitations

    def is_safe_url(self, url: str) -> bool:
        """Return False for a malformed URL instead of raising."""
        try:
            return bool(super().is_safe_url(url))
        except ValueError:
            return False

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Add nothing: the next page already shows that the login worked."""
