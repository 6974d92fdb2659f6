"""Messages of the work page go a shorter way than pages do: a rater sends one a second, and nobody looks at them.

What a page needs and a message does not (flash messages, a content policy, allauth's hooks, a line in the log when all
went well) costs as much as recording twelve ratings. Who asks, and whether the request is forged, is checked on both
ways by the same middleware.
"""

from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string
from django_structlog.middlewares import RequestMiddleware

Handler = Callable[[HttpRequest], HttpResponse]
_convert_exceptions = cast(Callable[[Any], Handler], convert_exception_to_response)


class RatingRequestMiddleware(BaseHandler):
    """Branches off for POST below settings.MESSAGES_UNDER, through settings.MESSAGE_MIDDLEWARE instead of what follows
    in MIDDLEWARE."""

    def __init__(self, get_response: Handler) -> None:
        self.pages = get_response
        self.messages = self._chain()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_message = request.method == "POST" and request.path_info.startswith(settings.RATING_REQUEST_PREFIX)
        return self.messages(request) if is_message else self.pages(request)

    def _chain(self) -> Handler:
        """As Django makes its own, from the innermost outwards."""
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
    """The log's line about a request, for those alone that were refused or failed."""

    def __init__(self, get_response: Handler) -> None:
        # Not its own: that listens for failures, which the one of the long way does for both.
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = cast(HttpResponse, self.get_response(request))
        if response.status_code >= 400:
            self.prepare(request)
            self.handle_response(request, response)
        return response
