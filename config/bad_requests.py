"""Answer requests that cannot be parsed, with a page that says what to do."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.template.loader import render_to_string

_MAX_DRAINED_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024


def render_bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the error page. It reads nothing from the request, any part of which may be broken."""
    is_too_big = isinstance(exception, RequestDataTooBig)
    if is_too_big:
        _drain_body(request)
    status = 413 if is_too_big else 400
    return HttpResponse(render_to_string("400.html", {"is_too_big": is_too_big}), status=status)


def _drain_body(request: HttpRequest) -> None:
    """Read the rest of the body: a browser shows the response only after it has sent everything."""
    left = _MAX_DRAINED_BYTES
    try:
        while left > 0 and (piece := request.read(_CHUNK_BYTES)):
            left -= len(piece)
    except UnreadablePostError:
        return
