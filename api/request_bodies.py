"""Read request bodies in chunks, so that they can be larger than memory."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.request import Request

from api.problems import ApiProblem

CHUNK_BYTES = 1 << 20


def announced_size(request: Request) -> int | None:
    """Return the Content-Length, or None for a chunked body whose end the web server detects.

    A body with neither is refused: it could not be distinguished from a truncated one."""
    announced = request.headers.get("Content-Length", "")
    if _is_chunked(request):
        return None
    if not announced.isdecimal() or "Transfer-Encoding" in request.headers:
        raise ApiProblem(_("Send a Content-Length header, or use chunked transfer encoding."), status_code=411)
    if announced == "0":
        raise ApiProblem(
            _("The request body is empty. Send the file as the body."), status_code=status.HTTP_400_BAD_REQUEST
        )
    return int(announced)


def iter_chunks(request: Request) -> Iterator[bytes]:
    stream = request._request.META["wsgi.input"] if _is_chunked(request) else request._request
    try:
        while piece := stream.read(CHUNK_BYTES):
            yield piece
    except Exception as error:  # the web server has its own errors for malformed chunks
        message = _("The request body is incomplete. Send it again.")
        raise ApiProblem(message, status_code=status.HTTP_400_BAD_REQUEST) from error


def _is_chunked(request: Request) -> bool:
    """Whether the body is chunked and the web server detects its end."""
    is_ended = "wsgi.input_terminated" in request._request.META
    return is_ended and request.headers.get("Transfer-Encoding", "").lower() == "chunked"
