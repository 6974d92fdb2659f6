"""Says with each request who is asking."""

from typing import Any

from django.contrib import auth
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts import backend


class WhoAsks(AuthenticationMiddleware):
    """Django's, which checks the session against the person; the row of the person came with the session's."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _person(request))  # type: ignore[assignment]  # as Django does


def _person(request: HttpRequest) -> Any:
    request.session.get(auth.SESSION_KEY)  # reads it, where nobody has yet
    with backend.knowing(getattr(request.session, "person", None)):
        return auth.get_user(request)
