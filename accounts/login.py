"""Log a user in through allauth. Its login page, login links and invitations all end in its stages."""

from collections.abc import Mapping
from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts import confirmation, factors, rate_limits, single_sign_on
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
        """Count the attempt as failed. `authenticate` undoes that after a success."""
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
        single_sign_on.note_factor(request)
        methods = get_authentication_records(request, user)
        last = methods[-1] if methods else {}
        _log_login_event("logged_in", user, by=user, method=str(last.get("type") or last.get("method") or ""))

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        return not confirmation.is_recent(self.request)

    def send_notification_mail(self, template_prefix: str, user: User, *args: Any, **kwargs: Any) -> None:
        """Log the change that allauth reports, and mail our own text."""
        factors.log_notified_change(template_prefix=template_prefix, user=user, now=timezone.now())

    def logout(self, request: HttpRequest) -> None:
        if isinstance(request.user, User):
            _log_login_event("logged_out", request.user, by=request.user)
        super().logout(request)

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Add errors only: the next page already shows that the login worked."""
        if level >= messages.ERROR and kwargs.get("message"):
            messages.error(request, kwargs["message"])


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
