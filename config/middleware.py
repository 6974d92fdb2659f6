"""Our own middleware: a shorter path for requests of the work page, the origin of events, and the time zone."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.module_loading import import_string
from django_structlog.middlewares import RequestMiddleware

from accounts.sessions import read_origin
from config import problems, request_times
from events import origins

Handler = Callable[[HttpRequest], HttpResponse]
_convert_exceptions = cast(Callable[[Any], Handler], convert_exception_to_response)


class SecurityHeadersMiddleware:
    """Add the security headers that a response lacks, whatever handled the request."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for name, value in settings.SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers["Permissions-Policy"] = settings.PERMISSIONS_POLICY
        return response


class ApiProblemMiddleware:
    """Answer every refusal at or below API_PREFIX as a problem document (RFC 9457), whichever code refused the request.

    The views of the API make their own; URL resolution, other middleware and unexpected errors make pages."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        is_refusal = response.status_code >= 400 and f"{request.path_info}/".startswith(settings.API_PREFIX)
        if not is_refusal or response.headers.get("Content-Type") == problems.CONTENT_TYPE:
            return response
        kept = {name: response.headers[name] for name in ("Allow", "Retry-After") if name in response.headers}
        status = response.status_code
        return HttpResponse(
            problems.encode_problem(status), status=status, content_type=problems.CONTENT_TYPE, headers=kept
        )


class RatingRequestMiddleware(BaseHandler):
    """Route POST requests below RATING_REQUEST_PREFIX through RATING_REQUEST_MIDDLEWARE.

    A rater's browser sends one each second. Flash messages, content policy, allauth's hooks and success log lines,
    which only pages need, would cost as much as recording twelve ratings. Session and CSRF checks are the same."""

    def __init__(self, get_response: Handler) -> None:
        self.handle_page = get_response
        self.handle_rating = self._chain()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_rating = request.method == "POST" and request.path_info.startswith(settings.RATING_REQUEST_PREFIX)
        if not is_rating:
            return self.handle_page(request)
        began = time.perf_counter()
        response = self.handle_rating(request)
        request_times.note_request(request.path_info, time.perf_counter() - began)
        return response

    def _chain(self) -> Handler:
        """Build the chain as Django does, from the innermost middleware outwards."""
        self._view_middleware: list[Callable[..., HttpResponse | None]] = []
        self._template_response_middleware: list[object] = []
        self._exception_middleware: list[object] = []
        handler = _convert_exceptions(self._get_response)  # type: ignore[attr-defined]  # Django's, without a stub
        for name in reversed(settings.RATING_REQUEST_MIDDLEWARE):
            middleware = import_string(name)(handler)
            if hasattr(middleware, "process_view"):
                self._view_middleware.insert(0, middleware.process_view)
            handler = _convert_exceptions(middleware)
        return handler


class ErrorLogMiddleware(RequestMiddleware):
    """Log only requests that were refused or failed."""

    def __init__(self, get_response: Handler) -> None:
        # Skip the parent's initializer: its signal handlers are already connected by the page middleware.
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = cast(HttpResponse, self.get_response(request))
        if response.status_code >= 400:
            self.prepare(request)
            self.handle_response(request, response)
        return response


class EventOriginMiddleware:
    """Let events of this request name its address and browser."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        address, browser = read_origin(request)
        with origins.request_origin(address=address, browser=browser):
            return self.get_response(request)


class TimeZoneMiddleware:
    """Show times in the user's time zone, which the browser sends in a cookie. API requests get UTC."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        zone = None if request.path_info.startswith("/api/") else find_time_zone(request.COOKIES.get("zone", ""))
        with timezone.override(zone):
            return self.get_response(request)


@lru_cache(maxsize=600)  # about as many time zones exist
def find_time_zone(name: str) -> ZoneInfo | None:
    """Return the zone, or None for an unknown name: anything can be in a cookie."""
    return ZoneInfo(name) if name in _time_zone_names() else None


@lru_cache(maxsize=1)
def _time_zone_names() -> frozenset[str]:
    return frozenset(available_timezones())
