"""What is answered to a request that cannot be read at all: a page that says so, and what to do."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.template.loader import render_to_string

_HEARD_OUT = 64 * 1024 * 1024
_PIECE = 64 * 1024


def unreadable(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Asks the request for nothing: what is wrong with it may be anything."""
    is_too_big = isinstance(exception, RequestDataTooBig)
    if is_too_big:
        _hear_out(request)
    status = 413 if is_too_big else 400
    return HttpResponse(render_to_string("400.html", {"is_too_big": is_too_big}), status=status)


def _hear_out(request: HttpRequest) -> None:
    """A browser that is cut off while it sends shows that the connection was lost, and not the answer."""
    left = _HEARD_OUT
    try:
        while left > 0 and (piece := request.read(_PIECE)):
            left -= len(piece)
    except UnreadablePostError:
        return
