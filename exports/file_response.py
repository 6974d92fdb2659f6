"""Send a file or a byte range, so that an interrupted download can continue. Django's FileResponse has no ranges."""

import re
from collections.abc import Iterator
from pathlib import Path

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})$")
_BLOCK_SIZE = 64 * 1024


def send_file(request: HttpRequest, path: Path, *, sha256: str, name: str, content_type: str) -> HttpResponseBase:
    """Return the response. The checksum is the ETag."""
    tag, size = f'"{sha256}"', path.stat().st_size
    disposition = content_disposition_header(as_attachment=True, filename=name)
    headers = {"ETag": tag, "Accept-Ranges": "bytes", "X-Content-Type-Options": "nosniff"}
    headers |= {"Content-Disposition": disposition} if disposition else {}
    if tag in request.headers.get("If-None-Match", ""):
        return HttpResponse(status=304, headers=headers)
    start, stop = 0, size
    range_header = request.headers.get("Range", "")
    if range_header and request.headers.get("If-Range", tag) == tag:
        start, stop = _parse_range(range_header, size)
    if start >= stop and size:
        return HttpResponse(status=416, headers={**headers, "Content-Range": f"bytes */{size}"})
    is_partial = (start, stop) != (0, size)
    headers |= {"Content-Range": f"bytes {start}-{stop - 1}/{size}"} if is_partial else {}
    headers |= {"Content-Length": str(stop - start), "Content-Type": content_type}
    body = () if request.method == "HEAD" else _read_bytes(path, start, stop)
    return StreamingHttpResponse(body, status=206 if is_partial else 200, headers=headers)


def _parse_range(header: str, size: int) -> tuple[int, int]:
    """Return the first byte and the byte after the last. Several ranges, or an invalid header, select the whole file,
    as HTTP permits; an empty range cannot be satisfied."""
    match = _RANGE.match(header.strip())
    if match is None or not (match[1] or match[2]):
        return 0, size
    if not match[1]:
        return max(size - int(match[2]), 0), size
    if match[2] and int(match[2]) < int(match[1]):
        return 0, size
    return int(match[1]), min(int(match[2]) + 1, size) if match[2] else size


def _read_bytes(path: Path, start: int, stop: int) -> Iterator[bytes]:
    """Open the file on the first read: a response that is never read must not hold it open."""
    with path.open("rb") as file:
        file.seek(start)
        left = stop - start
        while left > 0 and (block := file.read(min(_BLOCK_SIZE, left))):
            left -= len(block)
            yield block
