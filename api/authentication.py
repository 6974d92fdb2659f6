"""Who a program acts for, and what its token lets it do. A session's cookie counts for nothing here: no page can make a
person's browser call the API."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication, exceptions, permissions
from rest_framework.request import Request

from accounts import api_tokens
from accounts.models import ApiToken, User

SCHEME = "Bearer"


class TokenAuthentication(authentication.BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME.lower():
            return None
        token = api_tokens.find_token(secret=secret.strip(), now=timezone.now())
        if token is None:
            raise exceptions.AuthenticationFailed(_("This token does not work: it is unknown, withdrawn or too old."))
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # spectacular's own
    """The same, said in the schema."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class HasScope(permissions.BasePermission):
    """A view names the scope of each of its methods."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.auth, ApiToken):
            raise exceptions.NotAuthenticated(_("Send a token: “Authorization: Bearer …”. People make them on a page."))
        scope = view.scopes.get("GET" if request.method == "HEAD" else request.method)
        if scope is None:
            raise exceptions.MethodNotAllowed(request.method or "")
        if scope not in request.auth.scopes:
            raise exceptions.PermissionDenied(_("This token lacks the scope “%(scope)s”.") % {"scope": scope.value})
        return True
