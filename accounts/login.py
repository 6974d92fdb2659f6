"""Log a user in through allauth. Its login page, login links and invitations all end in its stages."""

from collections.abc import Mapping
from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts import rate_limits
from accounts.models import User
from accounts.security_log import log_account_event


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    error_messages: ClassVar = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": _("Incorrect username or password."),
        "email_password_mismatch": _("Incorrect email address or password."),
        "too_many_login_attempts": _("Too many attempts for this account. Wait five minutes, then try again."),
    }

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count the attempt as failed. `authenticate` takes that back after a success."""
        try:
            rate_limits.take(
                {"login_failed": 1}, now=timezone.now().timestamp(), **self._attempt_keys(request, credentials)
            )
        except rate_limits.TooManyRequests:
            _log_login_event("locked", _find_named_user(credentials))
            raise self.validation_error("too_many_login_attempts") from None

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        user: User | None = super().authenticate(request, **credentials)
        if user is not None:
            rate_limits.take(
                {"login_failed": -1}, now=timezone.now().timestamp(), **self._attempt_keys(request, credentials)
            )
        return user

    def _attempt_keys(self, request: HttpRequest, credentials: dict[str, Any]) -> dict[str, str]:
        name = str(credentials.get("email") or credentials.get("username") or "").lower()
        return {"address": rate_limits.client_address(request), "account": rate_limits.hash_key(name)}

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False  # accounts are created through invitations

    def is_safe_url(self, url: str) -> bool:
        """Return False for a malformed URL instead of raising."""
        try:
            return bool(super().is_safe_url(url))
        except ValueError:
            return False

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        _log_login_event("login_failed", _find_named_user(credentials))

    def pre_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponseBase | None:
        if not user.is_active:
            _log_login_event("login_refused", user)
        response: HttpResponseBase | None = super().pre_login(request, user, **options)
        return response

    def login(self, request: HttpRequest, user: User) -> None:
        super().login(request, user)
        methods = get_authentication_records(request, user)
        _log_login_event("logged_in", user, by=user, method=methods[-1]["method"] if methods else "")

    def logout(self, request: HttpRequest) -> None:
        if isinstance(request.user, User):
            _log_login_event("logged_out", request.user, by=request.user)
        super().logout(request)

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Add nothing: the next page already shows that the login worked."""


def _log_login_event(what: str, user: User | None, *, by: User | None = None, **detail: str) -> None:
    log_account_event(what=what, user=user, by=by, now=timezone.now(), **detail)


def _find_named_user(credentials: Mapping[str, Any]) -> User | None:
    """Return the user who was named by a failed login. Costs the same if there is none."""
    name = credentials.get("email") or credentials.get("username") or ""
    return User.objects.filter(Q(username__iexact=name) | ~Q(email="") & Q(email__iexact=name)).first()


def log_in(request: HttpRequest, user: User, *, way: str, then: str | None = None) -> HttpResponseBase:
    """Log `user` in, so that a second factor is requested if they have one.

    Another user who is logged in within this browser is logged out first. `then` is the page to show next (default:
    the home page)."""
    if request.user.is_authenticated and request.user != user:
        get_adapter(request).logout(request)
    record_authentication(request, user, method=way)
    response: HttpResponseBase = perform_login(request, user, redirect_url=then)
    return response
