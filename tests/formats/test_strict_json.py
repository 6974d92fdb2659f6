"""JSON that is refused, with its place."""

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
    ("line", "column", "reason"),
    [
        (b'{"name": "x"', 13, "malformed JSON: the text ends here, expected ','"),
        (b'{"name": "x', 10, "malformed JSON: this string is not whole, found '\"x'"),
        (b'{"name" "x"}', 9, "malformed JSON: expected ':', found '\"x\"}'"),
        (b'{name: "x"}', 2, "malformed JSON: expected a string, found 'name: \"x\"}'"),
        (b'{"name": "x"} {}', 15, "more text after the end of the record"),
        (b"", 1, "malformed JSON: the text ends here, expected a value"),
        (b'{"name": "x", "other": NaN}', 24, "malformed JSON: expected a value, found 'NaN}'"),
        (b'{"name": "x", "name": "x"}', 15, 'the key "name" is given twice'),
        (b'{"name": "x", "o": {"\\u0061": 1, "a": 1}}', 34, 'the key "a" is given twice'),
        (b'{"name": 5}', 10, "Expected `str`, got `int`, in name"),
        (b'{"name": "x", "counts": [1, 2, "3"]}', 32, "Expected `int`, got `str`, in counts[2]"),
        (b'{"counts": []}', 1, "Object missing required field `name`"),
        (b'["name"]', 1, "Expected `object`, got `array`"),
        (b'{"name": "a\\u0000"}', 10, "a NUL character (\\u0000) in this string: databases cannot hold it"),
        (b'{"name": "a\x00"}', 10, None),
        (b'{"name": "\\ud800"}', 10, "half a surrogate pair (\\ud800) in this string"),
        (b'{"name": "x", "o": "\\udc00"}', 20, "half a surrogate pair (\\udc00) in this string"),
        ('{"näme": "'.encode() + b'\xff"}', 11, "the byte 0xff is not UTF-8: save the file as UTF-8"),
        (b'{"name": "x", "o": "\xff"}', 21, "the byte 0xff is not UTF-8: save the file as UTF-8"),
        (b"\xef\xbb\xbf{}", 1, None),
        (b'{"name": "x", "o": 1' + b"0" * 5000 + b"}", 20, "a number of 5,001 characters"),
    ],
)
def test_decode_says_where_and_why(line: bytes, column: int, reason: str | None) -> None:
    found = refusal(line)
    assert found[0] == column
    assert reason is None or found[1] == reason


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_decode_refuses_bottomless_nesting(opening: bytes) -> None:
    column, reason = refusal(b'{"name": "x", "o": ' + opening * 100_000)
    assert "nested more than 200 levels deep" in reason
    assert column > 200


def test_decode_takes_what_only_looks_suspicious() -> None:
    assert strict_json.decode(b'{"name": "\\\\u0000 \\ud83d\\ude00"}', decoder).name == "\\u0000 😀"


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('a\\"é😀\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(_values, st.booleans(), st.sampled_from([None, 1]))
def test_examine_accepts_all_json_that_python_writes(value: object, is_ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    offsets = strict_json.locate_values(text.encode())
    assert all(0 <= offset < len(text) for offset in offsets.values())


@given(_values, st.data())
def test_examine_refuses_what_python_refuses(value: object, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        json.loads(cut)
    except ValueError:
        with pytest.raises(JsonRefused):
            strict_json.locate_values(cut.encode())
    else:
        strict_json.locate_values(cut.encode())
