"""Attach the user and their time zone to each request."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.contrib import auth
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from accounts import auth_backend


class SessionUserMiddleware(AuthenticationMiddleware):
    """Django's authentication middleware, with the user row that was loaded together with the session."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _load_user(request))  # type: ignore[assignment]  # as Django does


def _load_user(request: HttpRequest) -> Any:
    request.session.get(auth.SESSION_KEY)  # loads the session
    with auth_backend.preloaded_user(getattr(request.session, "user_row", None)):
        return auth.get_user(request)


class TimeZoneMiddleware:
    """Show times in the user's time zone, which the browser sends in a cookie. API requests get UTC."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        name = request.COOKIES.get("zone", "")
        zone = None if request.path_info.startswith("/api/") else find_time_zone(name)
        with timezone.override(zone):
            return self.get_response(request)


@lru_cache(maxsize=600)  # about as many time zones exist
def find_time_zone(name: str) -> ZoneInfo | None:
    """Return the zone, or None for an unknown name: anything can be in a cookie."""
    return ZoneInfo(name) if name in _time_zone_names() else None


@lru_cache(maxsize=1)
def _time_zone_names() -> frozenset[str]:
    return frozenset(available_timezones())
