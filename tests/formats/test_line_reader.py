"""Lines of a stream."""

import io

import pytest

from formats import line_reader
from formats.records import BadLine


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a\nb\n", [(1, b"a"), (2, b"b")]),
        (b"a\nb", [(1, b"a"), (2, b"b")]),
        (b"a\r\n\r\n\nb\r\n", [(1, b"a\r"), (4, b"b\r")]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", [(1, b"a"), (2, b"\xef\xbb\xbfb")]),
    ],
)
def test_read_numbers_lines_as_an_editor_does(content: bytes, expected: list[tuple[int, bytes]]) -> None:
    assert list(line_reader.read_lines(io.BytesIO(content))) == expected


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbf\n \n  [1]\n[2]\n", b"\xef\xbb\xbf[1]", b"", b"\n\n", b"x" * 99 + b"\ny"]
)
def test_head_gives_back_what_read_would_have_given(content: bytes) -> None:
    stream = io.BytesIO(content)
    begun = line_reader.read_head(stream, limit=3)
    assert list(line_reader.read_lines(stream, begun=begun)) == list(line_reader.read_lines(io.BytesIO(content)))


def test_read_refuses_a_huge_line_and_goes_on_after_it() -> None:
    stream = io.BytesIO(b"a\n" + b"x" * 100 + b"\n" + b"y" * 10 + b"\nb\n" + b"z" * 11)
    found = list(line_reader.read_lines(stream, limit=10))
    assert [item if isinstance(item, tuple) else item.line for item in found] == [
        (1, b"a"),
        2,
        (3, b"y" * 10),
        (4, b"b"),
        5,
    ]
    assert isinstance(found[1], BadLine)
    assert "longer than 10 bytes" in str(found[1])
