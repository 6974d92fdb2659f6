"""JSON values of a file, whichever of the three kinds it is."""

import io
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import json_values
from formats.json_values import RawValue
from formats.records import BadLine, ProblemRecord, TraceRecord


class ObjectRecord(msgspec.Struct):
    name: str


def values(content: bytes, **limits: int) -> list[RawValue | BadLine]:
    return list(json_values.split_values(io.BytesIO(content), **limits))


def read(content: bytes) -> list[TraceRecord | BadLine]:
    decoder = msgspec.json.Decoder(ObjectRecord)
    return list(
        json_values.read_traces(
            io.BytesIO(content), decoder, lambda thing: [TraceRecord(ProblemRecord(thing.name), steps=[])]
        )
    )


_records = st.lists(
    st.dictionaries(st.text('a"\\]}é\n', max_size=4), st.text('ab"\\,[]{}😀\n', max_size=6), max_size=3)
)


@given(_records, st.sampled_from([None, 1, 3]), st.booleans())
def test_values_finds_every_item_of_an_array(records: list[Any], indent: int | None, is_ascii: bool) -> None:
    content = json.dumps(records, indent=indent, ensure_ascii=is_ascii).encode()
    found = values(content)
    assert [json.loads(item.raw) for item in found if isinstance(item, RawValue)] == records
    text = content.decode().split("\n")
    for item in found:
        assert isinstance(item, RawValue)
        assert text[item.line - 1][item.column - 1] == "{"


@given(_records)
def test_values_finds_every_line(records: list[Any]) -> None:
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    assert [json.loads(item.raw) for item in values(content) if isinstance(item, RawValue)] == records


def test_values_takes_one_record_on_many_lines() -> None:
    (found,) = values(json.dumps({"a": [1, 2], "b": {}}, indent=2).encode())
    assert isinstance(found, RawValue)
    assert json.loads(found.raw) == {"a": [1, 2], "b": {}}


@pytest.mark.parametrize("size", [65534, 65535, 65536, 65537, 200_000])
def test_values_joins_pieces_inside_strings(size: int) -> None:
    records = [{"a": "x" * size + "\\"}, {"b": "]"}]
    assert [
        json.loads(item.raw) for item in values(json.dumps(records).encode()) if isinstance(item, RawValue)
    ] == records


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'[{"name": "a"},\n {"name": 1}, {"name": "b"}]', "line 2, column 11: Expected `str`, got `int`, in name"),
        (b'[{"name": "a"}, {"name"', "line 1, column 17: malformed JSON: the file ends in the middle of this record"),
        (b'[{"name": "a"}] x', "line 1, column 17: more text after the end of the array"),
        (b'[\n{"name":\n"a",\n"name": "b"}]', 'line 4, column 1: the key "name" is given twice'),
        (b'{"name": "a"}\n{"name"}\n', "line 2, column 8: malformed JSON: expected ':', found '}'"),
        (b'{\n"name": 1\n}', "line 2, column 9: Expected `str`, got `int`, in name"),
        (b"[,]", "line 1, column 2: malformed JSON: the text ends here, expected a value"),
        (b"<html>", "line 1, column 1: malformed JSON: expected a value, found '<html>'"),
    ],
)
def test_read_says_where_in_the_file(content: bytes, expected: str) -> None:
    assert expected in [str(item) for item in read(content) if isinstance(item, BadLine)]


def test_values_refuses_what_is_too_long_in_bounded_memory() -> None:
    (found,) = values(b'[{"a": "' + b"x" * 500_000 + b'"}]', limit=100_000)
    assert "longer than" in str(found)


def test_values_reads_arrays_one_after_the_other() -> None:
    found = values(b'[{"a": 1}, {"b": 2}]\n[]\n\n[{"c": 3}]\n')
    assert [(item.array, item.line) for item in found if isinstance(item, RawValue)] == [(1, 1), (1, 1), (3, 4)]
