"""Reads what a program sends, in pieces: a body may be larger than the memory."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.request import Request

from api.problems import Problem

PIECE = 1 << 20


def size_of(request: Request) -> int:
    """What was announced. A body without its length cannot be read here, and one that was cut off not be told."""
    announced = request.headers.get("Content-Length", "")
    if not announced.isdecimal() or "Transfer-Encoding" in request.headers:
        raise Problem(_("Send the length of the body (Content-Length), not chunks."), status_code=411)
    if announced == "0":
        raise Problem(_("The body is empty: send the file as the body."), status_code=status.HTTP_400_BAD_REQUEST)
    return int(announced)


def pieces(request: Request) -> Iterator[bytes]:
    stream = request._request
    while piece := stream.read(PIECE):
        yield piece
