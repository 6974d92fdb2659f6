"""Files split into values: JSON Lines, arrays, single records, and the place of each value."""

import io
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import raw_values
from formats.raw_values import RawValue
from formats.record_reader import RecordReader
from formats.records import BadLine, ProblemRecord, TraceRecord


class ObjectRecord(msgspec.Struct):
    name: str


def values(content: bytes) -> list[RawValue | BadLine]:
    return list(raw_values.split_values(io.BytesIO(content)))


def read(content: bytes) -> list[TraceRecord | BadLine]:
    reader = RecordReader(ObjectRecord, lambda item: [TraceRecord(ProblemRecord(item.name), steps=[])])
    return list(reader(io.BytesIO(content)))


_records = st.lists(
    st.dictionaries(st.text('a"\\]}é\n', max_size=4), st.text('ab"\\,[]{}😀\n', max_size=6), max_size=3)
)


@given(_records, st.sampled_from([None, 1, 3]), st.booleans())
@pytest.mark.fault
def test_split_finds_every_item_of_an_array(records: list[Any], indent: int | None, is_ascii: bool) -> None:
    content = json.dumps(records, indent=indent, ensure_ascii=is_ascii).encode()
    found = values(content)
    assert [json.loads(item.raw) for item in found if isinstance(item, RawValue)] == records
    text = content.decode().split("\n")
    for item in found:
        assert isinstance(item, RawValue)
        assert text[item.line - 1][item.column - 1] == "{"


@given(_records)
@pytest.mark.fault
def test_split_finds_every_line(records: list[Any]) -> None:
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    assert [json.loads(item.raw) for item in values(content) if isinstance(item, RawValue)] == records


def test_split_accepts_one_record_on_many_lines() -> None:
    (found,) = values(json.dumps({"a": [1, 2], "b": {}}, indent=2).encode())
    assert isinstance(found, RawValue)
    assert json.loads(found.raw) == {"a": [1, 2], "b": {}}


@pytest.mark.parametrize("size", [65534, 65535, 65536, 65537, 200_000])
def test_split_joins_chunks_inside_strings(size: int) -> None:
    records = [{"a": "x" * size + "\\"}, {"b": "]"}]
    assert [
        json.loads(item.raw) for item in values(json.dumps(records).encode()) if isinstance(item, RawValue)
    ] == records


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'[{"name": "a"},\n {"name": 1}, {"name": "b"}]', (2, 11)),
        (b'[{"name": "a"}, {"name"', (1, 17)),
        (b'[{"name": "a"}] x', (1, 17)),
        (b'[\n{"name":\n"a",\n"name": "b"}]', (4, 1)),
        (b'{"name": "a"}\n{"name"}\n', (2, 8)),
        (b'{\n"name": 1\n}', (2, 9)),
        (b"[,]", (1, 2)),
        (b"<html>", (1, 1)),
    ],
)
def test_bad_lines_have_the_place_of_the_error(content: bytes, expected: tuple[int, int]) -> None:
    assert expected in [(item.line, item.column) for item in read(content) if isinstance(item, BadLine)]


def test_split_refuses_a_long_record_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_values, "LINE_LIMIT", 100_000)
    (found,) = values(b'[{"a": "' + b"x" * 500_000 + b'"}]')
    assert isinstance(found, BadLine)
    assert (found.line, found.column) == (1, 2)


def test_split_reads_several_arrays() -> None:
    found = values(b'[{"a": 1}, {"b": 2}]\n[]\n\n[{"c": 3}]\n')
    assert [item.line for item in found if isinstance(item, RawValue)] == [1, 1, 4]


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
def test_read_lines_numbers_lines_as_an_editor_does(content: bytes, expected: list[tuple[int, bytes]]) -> None:
    assert list(raw_values.read_lines(io.BytesIO(content))) == expected


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbf\n \n  [1]\n[2]\n", b"\xef\xbb\xbf[1]", b"", b"\n\n", b"x" * 99 + b"\ny"]
)
def test_read_head_loses_nothing(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_values, "_PIECE", 3)
    stream = io.BytesIO(content)
    begun = raw_values.read_head(stream)
    assert list(raw_values.read_lines(stream, begun=begun)) == list(raw_values.read_lines(io.BytesIO(content)))


def test_read_lines_refuses_a_huge_line_and_continues_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_values, "LINE_LIMIT", 10)
    stream = io.BytesIO(b"a\n" + b"x" * 100 + b"\n" + b"y" * 10 + b"\nb\n" + b"z" * 11)
    found = list(raw_values.read_lines(stream))
    assert [item if isinstance(item, tuple) else item.line for item in found] == [
        (1, b"a"),
        2,
        (3, b"y" * 10),
        (4, b"b"),
        5,
    ]
    assert isinstance(found[1], BadLine)
    assert found[1].column == 11
