"""Token authentication and scopes. Session cookies are ignored, so no page can make a browser call the API."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication, exceptions, permissions
from rest_framework.request import Request

from accounts import tokens
from accounts.models import ApiToken, User

SCHEME = "Bearer"


class TokenAuthentication(authentication.BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME.lower():
            return None
        token = tokens.find_api_token(secret=secret.strip(), now=timezone.now())
        if token is None:
            raise exceptions.AuthenticationFailed(_("Invalid token: it is unknown, revoked or expired."))
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


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
            raise exceptions.PermissionDenied(_("This token lacks the scope “%(scope)s”.") % {"scope": scope.value})
        return True
