"""Reads what a program sends, in pieces: a body may be larger than the memory."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.request import Request

from api.problems import ApiProblem

CHUNK_BYTES = 1 << 20


def announced_size(request: Request) -> int | None:
    """What was announced; None where the body comes in chunks, of which the web server knows the last one. A body with
    neither cannot be told from one that was cut off."""
    announced = request.headers.get("Content-Length", "")
    if _is_chunked(request):
        return None
    if not announced.isdecimal() or "Transfer-Encoding" in request.headers:
        raise ApiProblem(_("Send the length of the body (Content-Length), or send it in chunks."), status_code=411)
    if announced == "0":
        raise ApiProblem(_("The body is empty: send the file as the body."), status_code=status.HTTP_400_BAD_REQUEST)
    return int(announced)


def iter_chunks(request: Request) -> Iterator[bytes]:
    stream = request._request.META["wsgi.input"] if _is_chunked(request) else request._request
    try:
        while piece := stream.read(CHUNK_BYTES):
            yield piece
    except OSError as error:
        message = _("The body was cut off: send it again.")
        raise ApiProblem(message, status_code=status.HTTP_400_BAD_REQUEST) from error


def _is_chunked(request: Request) -> bool:
    """Whether the web server puts chunks together and says where the last one ends."""
    is_ended = "wsgi.input_terminated" in request._request.META
    return is_ended and request.headers.get("Transfer-Encoding", "").lower() == "chunked"
