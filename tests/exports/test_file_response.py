"""A download that broke off goes on where it stopped."""

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


def ask(path: Path, method: str = "GET", **headers: str) -> HttpResponseBase:
    request = RequestFactory().generic(method, "/", headers=headers)
    return file_response.send_file(
        request, path, sha256="abc", name="a b.jsonl", content_type="application/octet-stream"
    )


def body(answer: HttpResponseBase) -> bytes:
    assert isinstance(answer, StreamingHttpResponse)
    return b"".join(answer.streaming_content)  # type: ignore[arg-type]  # not asynchronous here


def test_send_gives_the_whole_file_with_its_tag(path: Path) -> None:
    answer = ask(path)
    assert (answer.status_code, answer["ETag"], answer["Accept-Ranges"]) == (200, '"abc"', "bytes")
    assert answer["Content-Disposition"] == 'attachment; filename="a b.jsonl"'
    assert body(answer) == CONTENT
    assert body(ask(path, "HEAD")) == b""
    assert ask(path, "HEAD")["Content-Length"] == "1024"
    assert ask(path, **{"If-None-Match": '"abc"'}).status_code == 304


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [("bytes=0-9", 0, 10), ("bytes=1000-", 1000, 1024), ("bytes=-24", 1000, 1024), ("bytes=1020-9999", 1020, 1024)],
)
def test_send_gives_the_part_that_was_asked_for(path: Path, asked: str, start: int, stop: int) -> None:
    answer = ask(path, Range=asked)
    assert (answer.status_code, answer["Content-Range"]) == (206, f"bytes {start}-{stop - 1}/1024")
    assert body(answer) == CONTENT[start:stop]
    assert answer["Content-Length"] == str(stop - start)


@pytest.mark.parametrize("asked", ["bytes=1024-", "bytes=2000-3000", "bytes=-0"])
def test_send_refuses_a_part_that_is_not_there(path: Path, asked: str) -> None:
    answer = ask(path, Range=asked)
    assert (answer.status_code, answer["Content-Range"]) == (416, "bytes */1024")


@pytest.mark.parametrize("headers", [{"Range": "bytes=0-1,5-6"}, {"Range": "lines=1-2"}, {"Range": "bytes=9-3"}])
def test_send_gives_all_where_the_range_is_none(path: Path, headers: dict[str, str]) -> None:
    assert ask(path, **headers).status_code == 200


def test_send_begins_anew_when_the_file_is_another_one(path: Path) -> None:
    assert ask(path, Range="bytes=5-", **{"If-Range": '"old"'}).status_code == 200
    assert ask(path, Range="bytes=5-", **{"If-Range": '"abc"'}).status_code == 206
