"""Answer requests that cannot be parsed or that take too long, with a page that says what to do."""

import sys

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

from rawsql.statement_limits import is_statement_timeout

RETRY_SECONDS = 10


def render_bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the error page. It reads nothing from the request, any part of which may be broken.

    A browser shows the page only after it has sent everything; the web server receives the rest of the body."""
    is_too_big = isinstance(exception, RequestDataTooBig)
    content = render_to_string("400.html", {"is_too_big": is_too_big})
    return HttpResponse(content, status=413 if is_too_big else 400)


def render_server_error(request: HttpRequest) -> HttpResponse:
    """Return the page for an unexpected error, or for a statement that took too long."""
    if not is_statement_timeout(sys.exception()):
        return server_error(request)
    content = render_to_string("400.html", {"is_too_slow": True})
    return HttpResponse(content, status=503, headers={"Retry-After": RETRY_SECONDS})


def render_disk_full() -> HttpResponse:
    return HttpResponse(render_to_string("400.html", {"is_disk_full": True}), status=507)
