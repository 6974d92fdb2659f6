"""How allauth behaves here: nobody signs up by themselves, and nothing is said twice."""

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    error_messages: ClassVar = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": _("User name and password do not belong together. Write both again."),
        "email_password_mismatch": _("E-mail address and password do not belong together. Write both again."),
        "too_many_login_attempts": _("Too many tries for this account. Wait five minutes, then try again."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """An account comes from an invitation."""
        return False

    def is_safe_url(self, url: str) -> bool:
        """What is no address at all leads nowhere."""
        try:
            return bool(super().is_safe_url(url))
        except ValueError:
            return False

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """The page that follows shows what happened; "you have signed in" repeats it."""
