"""Redirect people whose role needs a second factor to the page where they set one up. No other page works until
then."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from accounts import factors, single_sign_on
from accounts.models import User
from people.models import Membership

# Pages to set up a factor, and those that any user has.
_OPEN_VIEWS = frozenset(
    {
        "account_logout",
        "account_reauthenticate",
        "live",
        "mfa_activate_totp",
        "mfa_add_webauthn",
        "mfa_index",
        "mfa_view_recovery_codes",
        "ready",
        "sso_confirm",
        "sso_callback",
        "theme",
    }
)


def needs_second_factor(user: User) -> bool:
    """Whether one of the user's roles needs a second factor. Crowd workers have none."""
    roles = settings.SECOND_FACTOR_ROLES
    if not roles or user.is_worker:
        return False
    is_operator = "operator" in roles and user.is_staff
    return is_operator or Membership.objects.of(user).filter(role__in=roles).exists()


class RequiredFactorMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponse | None:
        if not settings.SECOND_FACTOR_ROLES or not request.user.is_authenticated:
            return None
        match = request.resolver_match
        if (match is not None and match.view_name in _OPEN_VIEWS) or request.path_info.startswith("/api/"):
            return None
        user = request.user
        if not needs_second_factor(user) or single_sign_on.has_sso_factor(request) or factors.has_second_factor(user):
            return None
        if request.path_info.startswith(settings.RATING_REQUEST_PREFIX) and request.method == "POST":
            return HttpResponse(status=403)
        return HttpResponseRedirect(f"{reverse('mfa_index')}?required=yes")
