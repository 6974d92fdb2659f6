"""Downloads with byte ranges."""

from pathlib import Path

import pytest
from django.http import HttpResponseBase, StreamingHttpResponse
from django.test import RequestFactory

from exports import file_response

CONTENT = bytes(range(256)) * 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "x").write_bytes(CONTENT)
    return tmp_path / "x"


def send(path: Path, method: str = "GET", **headers: str) -> HttpResponseBase:
    request = RequestFactory().generic(method, "/", headers=headers)
    return file_response.send_file(
        request, path, sha256="abc", name="a b.jsonl", content_type="application/octet-stream"
    )


def read_body(response: HttpResponseBase) -> bytes:
    assert isinstance(response, StreamingHttpResponse)
    return b"".join(response.streaming_content)  # type: ignore[arg-type]  # not asynchronous here


def test_whole_file_is_sent_with_its_tag(path: Path) -> None:
    response = send(path)
    assert (response.status_code, response["ETag"], response["Accept-Ranges"]) == (200, '"abc"', "bytes")
    assert response["Content-Disposition"] == 'attachment; filename="a b.jsonl"'
    assert read_body(response) == CONTENT
    assert read_body(send(path, "HEAD")) == b""
    assert send(path, "HEAD")["Content-Length"] == "1024"
    assert send(path, **{"If-None-Match": '"abc"'}).status_code == 304


def test_empty_file_is_sent(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    response = send(tmp_path / "empty")
    assert response.status_code == 200
    assert read_body(response) == b""
    assert send(tmp_path / "empty", Range="bytes=0-").status_code == 200


@pytest.mark.parametrize(
    ("header", "start", "stop"),
    [("bytes=0-9", 0, 10), ("bytes=1000-", 1000, 1024), ("bytes=-24", 1000, 1024), ("bytes=1020-9999", 1020, 1024)],
)
def test_requested_range_is_sent(path: Path, header: str, start: int, stop: int) -> None:
    response = send(path, Range=header)
    assert (response.status_code, response["Content-Range"]) == (206, f"bytes {start}-{stop - 1}/1024")
    assert read_body(response) == CONTENT[start:stop]
    assert response["Content-Length"] == str(stop - start)


@pytest.mark.parametrize("header", ["bytes=1024-", "bytes=2000-3000", "bytes=-0"])
def test_range_outside_the_file_is_refused(path: Path, header: str) -> None:
    response = send(path, Range=header)
    assert (response.status_code, response["Content-Range"]) == (416, "bytes */1024")


@pytest.mark.parametrize("header", ["bytes=0-1,5-6", "lines=1-2", "bytes=9-3"])
def test_whole_file_is_sent_for_other_ranges(path: Path, header: str) -> None:
    assert send(path, Range=header).status_code == 200


def test_range_of_a_changed_file_sends_the_whole_file(path: Path) -> None:
    assert send(path, Range="bytes=5-", **{"If-Range": '"old"'}).status_code == 200
    assert send(path, Range="bytes=5-", **{"If-Range": '"abc"'}).status_code == 206
