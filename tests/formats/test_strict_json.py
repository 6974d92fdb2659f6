"""JSON that is refused, with the column and the value at fault."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import strict_json
from formats.strict_json import JsonRefused


class StrictRecord(msgspec.Struct):
    name: str
    counts: list[int] = []


decoder = msgspec.json.Decoder(StrictRecord)


def refusal(line: bytes) -> tuple[int, str]:
    with pytest.raises(JsonRefused) as caught:
        decode_and_check(line)
    return caught.value.column, caught.value.reason


def decode_and_check(line: bytes) -> None:
    strict_json.decode(line, decoder)
    strict_json.check_strictness(line)


@pytest.mark.parametrize(
    ("line", "column", "fact"),
    [
        (b'{"name": "x"', 13, "','"),
        (b'{"name": "x', 10, "'\"x'"),
        (b'{"name" "x"}', 9, "':'"),
        (b'{name: "x"}', 2, "'name: \"x\"}'"),
        (b'{"name": "x"} {}', 15, ""),
        (b"", 1, ""),
        (b'{"name": "x", "other": NaN}', 24, "'NaN}'"),
        (b'{"name": "x", "name": "x"}', 15, '"name"'),
        (b'{"name": "x", "o": {"\\u0061": 1, "a": 1}}', 34, '"a"'),
        (b'{"name": 5}', 10, "in name"),
        (b'{"name": "x", "counts": [1, 2, "3"]}', 32, "in counts[2]"),
        (b'{"counts": []}', 1, "`name`"),
        (b'["name"]', 1, "`array`"),
        (b'{"name": "a\\u0000"}', 10, "\\u0000"),
        (b'{"name": "a\x00"}', 10, ""),
        (b'{"name": "\\ud800"}', 10, "\\ud800"),
        (b'{"name": "x", "o": "\\udc00"}', 20, "\\udc00"),
        ('{"näme": "'.encode() + b'\xff"}', 11, "0xff"),
        (b'{"name": "x", "o": "\xff"}', 21, "0xff"),
        (b"\xef\xbb\xbf{}", 1, ""),
        (b'{"name": "x", "o": 1' + b"0" * 5000 + b"}", 20, "5,001"),
    ],
)
def test_decode_names_the_column_and_the_value(line: bytes, column: int, fact: str) -> None:
    found_column, reason = refusal(line)
    assert found_column == column
    assert fact in reason


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_decode_refuses_deep_nesting(opening: bytes) -> None:
    column, reason = refusal(b'{"name": "x", "o": ' + opening * 100_000)
    assert "200" in reason
    assert column > 200


@pytest.mark.parametrize("is_long", [False, True])  # a long text is not walked
@pytest.mark.parametrize(("opening", "end"), [("[", "]"), ('{"a":', "}"), ('[{"name": "x", "a": ', "}]")])
def test_limit_of_nesting_is_exact(opening: str, end: str, is_long: bool) -> None:
    def nest(depth: int) -> bytes:
        n = (depth - 1) // len(end)
        inner = opening * n + "1" + end * n
        more = ', "more": [' + "0, " * 60_000 + "0]" if is_long else ""
        return f'{{"name": "x", "o": {inner if (depth - 1) % len(end) == 0 else "[" + inner + "]"}{more}}}'.encode()

    decode_and_check(nest(200))
    strict_json.locate_values(nest(200))
    assert "200" in refusal(nest(201))[1]
    with pytest.raises(JsonRefused):
        strict_json.locate_values(nest(201))


def test_decode_accepts_text_that_only_looks_suspicious() -> None:
    assert strict_json.decode(b'{"name": "\\\\u0000 \\ud83d\\ude00"}', decoder).name == "\\u0000 😀"


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('a\\"é😀\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(_values, st.booleans(), st.sampled_from([None, 1]))
def test_locate_accepts_all_json_that_python_writes(value: object, is_ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    offsets = strict_json.locate_values(text.encode())
    assert all(0 <= offset < len(text) for offset in offsets.values())


@given(_values, st.data())
def test_locate_refuses_what_python_refuses(value: object, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        json.loads(cut)
    except ValueError:
        with pytest.raises(JsonRefused):
            strict_json.locate_values(cut.encode())
    else:
        strict_json.locate_values(cut.encode())
