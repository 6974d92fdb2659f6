"""Token authentication and scopes. Session cookies are ignored, so no page can make a browser call the API."""

import time
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication, exceptions, permissions, throttling
from rest_framework.request import Request

from accounts import rate_limits, tokens
from accounts.models import ApiToken, User
from accounts.security_log import log_account_event

SCHEME = "Bearer"


class TokenAuthentication(authentication.BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME.lower():
            return None
        token = tokens.find_api_token(secret=secret.strip(), now=timezone.now())
        if token is None:
            limit_requests({"api_failed": 1}, address=rate_limits.client_address(request._request))
            log_account_event(what="token_refused", user=None, by=None, now=timezone.now())
            raise exceptions.AuthenticationFailed(_("Invalid token: it is unknown, revoked or expired."))
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


def limit_requests(actions: dict[str, float], **keys: object) -> None:
    """Count a request. Raises Throttled if a limit is reached."""
    try:
        rate_limits.take(actions, now=time.time(), **keys)
    except rate_limits.TooManyRequests as error:
        raise exceptions.Throttled(error.seconds) from None


class RequestThrottle(throttling.BaseThrottle):
    """Limit the requests of each token, and of each address without one."""

    def allow_request(self, request: Request, view: Any) -> bool:
        if isinstance(request.auth, ApiToken):
            limit_requests({"api": 1}, token=request.auth.pk)
        else:
            limit_requests({"api_anonymous": 1}, address=rate_limits.client_address(request._request))
        return True


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # spectacular's own
    """Describe the token authentication in the OpenAPI schema."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class HasScope(permissions.BasePermission):
    """Require the scope that the view names for the method."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.auth, ApiToken):
            raise exceptions.NotAuthenticated(
                _("Send a token: “Authorization: Bearer …”. Create one in the account menu under API tokens.")
            )
        scope = view.scopes.get("GET" if request.method == "HEAD" else request.method)
        if scope is None:
            raise exceptions.MethodNotAllowed(request.method or "")
        if scope not in request.auth.scopes:
            raise exceptions.PermissionDenied(
                _("This token lacks the scope “%(scope)s”. Create a token with this scope.") % {"scope": scope.value}
            )
        return True
