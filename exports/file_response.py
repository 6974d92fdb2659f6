"""Sends a file as a whole or in part: a download that broke off goes on where it stopped. Django's own answer to files
knows no ranges."""

import re
from collections.abc import Iterator
from pathlib import Path

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})$")  # longer numbers are none of a file's
_PART = 64 * 1024


def send_file(request: HttpRequest, path: Path, *, sha256: str, name: str, content_type: str) -> HttpResponseBase:
    """The checksum is the file's tag: what changed is another file."""
    tag, size = f'"{sha256}"', path.stat().st_size
    if tag in request.headers.get("If-None-Match", ""):
        return _with_headers(HttpResponse(status=304), tag, name)
    asked = request.headers.get("Range", "")
    if asked and request.headers.get("If-Range", tag) == tag:
        span = _parse_range(asked, size)
        if span is None:
            refused = HttpResponse(status=416)
            refused["Content-Range"] = f"bytes */{size}"
            return _with_headers(refused, tag, name)
        if span != (0, size):
            part = _build_response(request, path, *span, content_type=content_type, status=206)
            part["Content-Range"] = f"bytes {span[0]}-{span[1] - 1}/{size}"
            return _with_headers(part, tag, name)
    return _with_headers(_build_response(request, path, 0, size, content_type=content_type), tag, name)


def _parse_range(asked: str, size: int) -> tuple[int, int] | None:
    """From and up to which byte; None where there is none. Several ranges, and what is no range at all, give the whole
    file, as the protocol allows."""
    found = _RANGE.match(asked.strip())
    if found is None or not (found[1] or found[2]):
        return 0, size
    if not found[1]:
        start, stop = max(size - int(found[2]), 0), size
    else:
        start = int(found[1])
        stop = min(int(found[2]) + 1, size) if found[2] else size
        if found[2] and int(found[2]) < start:
            return 0, size
    return None if start >= size or start >= stop else (start, stop)


def _build_response(
    request: HttpRequest, path: Path, start: int, stop: int, *, content_type: str, status: int = 200
) -> HttpResponseBase:
    body = () if request.method == "HEAD" else _read_bytes(path, start, stop)
    answer = StreamingHttpResponse(body, status=status, content_type=content_type)
    answer["Content-Length"] = str(stop - start)
    return answer


def _read_bytes(path: Path, start: int, stop: int) -> Iterator[bytes]:
    """Opened when it is read: an answer that nobody reads holds nothing."""
    with path.open("rb") as file:
        file.seek(start)
        left = stop - start
        while left > 0 and (part := file.read(min(_PART, left))):
            left -= len(part)
            yield part


def _with_headers(answer: HttpResponseBase, tag: str, name: str) -> HttpResponseBase:
    answer["ETag"] = tag
    answer["Accept-Ranges"] = "bytes"
    answer["X-Content-Type-Options"] = "nosniff"
    disposition = content_disposition_header(as_attachment=True, filename=name)
    if disposition:
        answer["Content-Disposition"] = disposition
    return answer
