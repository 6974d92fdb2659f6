"""Decode JSON strictly: anything that two programs could read differently is an error with a column.

msgspec decodes. Only a line that it rejects, or that looks suspicious, is walked character by character to find the
column of the error. Besides malformed JSON and wrong types, these are errors: duplicate keys, the NUL character and
unpaired surrogates (PostgreSQL cannot store them), NaN and infinities, bytes that are not UTF-8, and deep nesting.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

import msgspec

DEPTH_LIMIT = 200  # objects and arrays inside each other
NUMBER_LIMIT = 1000  # characters: converting a longer one would take very long
_TOO_DEEP = f"nested more than {DEPTH_LIMIT} levels deep"
# Values that a walk locates before it leaves the rest to the C library, which says less about an error.
WALK_LIMIT = 50_000
_T = TypeVar("_T")
_Path = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null")
_PATH_STEP = re.compile(r"\.([A-Za-z_][A-Za-z_0-9]*)|\[(\d+|\.\.\.)\]")
_NUL = rb"\u0000"
_KEY_END = re.compile(rb'"[ \t\r\n]*:')
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


class JsonRefused(Exception):
    """The text is not acceptable JSON. The column counts characters from 1."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(f"column {column}: {reason}")
        self.column = column
        self.reason = reason


class RecordMisfit(Exception):
    """The text is valid JSON but not a valid record. `path` leads to the value at fault."""

    def __init__(self, path: "_Path", reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason

    def locate_in(self, line: bytes) -> JsonRefused:
        """Replace the path by the column of the value, or of the closest value around it."""
        offsets = locate_values(line)
        path = self.path
        while path not in offsets:
            path = path[:-1]
        return JsonRefused(offsets[path] + 1, self.reason)


def misfit_from_error(error: Exception) -> RecordMisfit:
    """Convert an error of the library, which reports a path in its message."""
    reason, _, place = str(error).partition(" - at `$")
    reason = reason.replace("Invalid enum value", "not one of the values allowed:")
    place = place.rstrip("`").lstrip(".")
    path = tuple(name or int(index) for name, index in _PATH_STEP.findall(f".{place}") if index != "...")
    return RecordMisfit(path, f"{reason}, in {place}" if place else reason)


def decode(line: bytes, decoder: "msgspec.json.Decoder[_T]") -> _T:
    """Decode the record in a line. Duplicate keys pass; `check_strictness` finds them."""
    try:
        record = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise misfit_from_error(error).locate_in(line) from error
    if b"\\" in line and _NUL in line:  # searching for one character is fast
        locate_values(line)
    return record


def check_strictness(line: bytes) -> Any:
    """Return the value. Raise for errors that `decode` cannot see: in unknown keys, and duplicate keys."""
    try:
        value = _decode_anything(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _check_slowly(line)
    # A key that occurs twice is one member. A text may contain what looks like the end of a key; the slow way decides.
    return value if len(_KEY_END.findall(line)) == _count_members(value) else _check_slowly(line)


def is_too_deep(value: Any) -> bool:
    """Whether more than DEPTH_LIMIT objects and arrays are inside each other."""
    return _count_members(value) is None


def _count_members(value: Any) -> int | None:
    """Count the members of all objects in a value. Return None if it is too deep."""
    n_members, level = 0, [value] if isinstance(value, dict | list) else []
    for _depth in range(DEPTH_LIMIT):
        if not level:
            return n_members
        deeper: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                n_members += len(each)
            inner = each.values() if isinstance(each, dict) else each
            deeper += [value for value in inner if isinstance(value, dict | list)]
        level = deeper
    return None if level else n_members


def _check_slowly(line: bytes) -> Any:
    try:
        text = line.decode()
        value = _decode_text(text)
    except (ValueError, RecursionError):
        locate_values(line)
        raise
    if is_too_deep(value) or (b"\\u" in line and _SURROGATE.search(line)):
        locate_values(line)
    return value


def locate_values(line: bytes) -> "dict[_Path, int]":
    """Return the offset of every value by its path. Raises `JsonRefused` at the first error."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise JsonRefused(column, f"the byte 0x{line[error.start]:02x} is not UTF-8: save the file as UTF-8") from error
    walk = _Walk(text)
    try:
        end = walk.value(walk.after_space(0), ())
    except _WalkTooLong:
        _refuse_without_path(text)
        return walk.offsets
    if walk.after_space(end) != len(text):
        raise JsonRefused(walk.after_space(end) + 1, "more text after the end of the record")
    return walk.offsets


def _refuse_without_path(text: str) -> None:
    """Raise `JsonRefused` for errors of a text with too many values to walk through, as precisely as the library is."""
    try:
        value = _decode_text(text)
    except json.JSONDecodeError as error:
        raise JsonRefused(error.pos + 1, f"malformed JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise JsonRefused(1, f"this record contains invalid JSON: {error}") from error
    if is_too_deep(value):
        raise JsonRefused(1, f"this record is {_TOO_DEEP}")
    for string in _list_strings(value):
        if match := _NOT_STORABLE.search(string):
            raise JsonRefused(1, f"a string contains the character \\u{ord(match[0]):04x}: databases cannot store it")


def _list_strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list):
            waiting += one


class _WalkTooLong(Exception):
    """The text has more than WALK_LIMIT values."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate key")
    return members


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode_anything = msgspec.json.Decoder(Any).decode
# `json.loads` would make a decoder for each line.
_decode_text = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant).decode


class _Walk:
    """One pass over a text that records where each value begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offsets: dict[_Path, int] = {}

    def after_space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, path: _Path) -> int:
        """Walk the value that begins here and return where it ends."""
        if len(self.offsets) >= WALK_LIMIT:
            raise _WalkTooLong
        self.offsets[path] = at
        match self.text[at : at + 1]:
            case "{":
                return self._container(at, path, "}")
            case "[":
                return self._container(at, path, "]")
            case '"':
                return self._string(at)[1]
            case _:
                return self._scalar(at)

    def _container(self, at: int, path: _Path, end_mark: str) -> int:
        """Walk the members of an object or the items of an array."""
        if len(path) >= DEPTH_LIMIT:
            raise JsonRefused(at + 1, _TOO_DEEP)
        keys: set[str | int] = set()
        at = self.after_space(at + 1)
        if self.text[at : at + 1] == end_mark:
            return at + 1
        while True:
            key: str | int = len(keys)
            if end_mark == "}":
                key, end = self._string(at)
                if key in keys:
                    raise JsonRefused(at + 1, f"the key {json.dumps(key)} occurs twice")
                at = self._expect(":", end)
            keys.add(key)
            at = self.after_space(self.value(at, (*path, key)))
            if self.text[at : at + 1] == end_mark:
                return at + 1
            at = self._expect(",", at)

    def _expect(self, mark: str, at: int) -> int:
        """Expect the mark, with optional space around it, and return where the next text begins."""
        at = self.after_space(at)
        if self.text[at : at + 1] != mark:
            self._malformed(at, f"expected {mark!r}")
        return self.after_space(at + 1)

    def _string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self.text, at)
        if match is None:
            self._malformed(at, "expected a string" if self.text[at : at + 1] != '"' else "this string has no end")
        value: str = json.loads(match.group())
        if unwanted := _NOT_STORABLE.search(value):
            if unwanted[0] == "\0":
                raise JsonRefused(at + 1, "this string contains a NUL character (\\u0000): databases cannot store it")
            raise JsonRefused(at + 1, f"this string contains an unpaired surrogate (\\u{ord(unwanted[0]):04x})")
        return value, match.end()

    def _scalar(self, at: int) -> int:
        match = _SCALAR.match(self.text, at)
        if match is None:
            self._malformed(at, "expected a value")
        if match.end() - at > NUMBER_LIMIT:
            raise JsonRefused(at + 1, f"this number has {match.end() - at:,} characters: the limit is {NUMBER_LIMIT:,}")
        return match.end()

    def _malformed(self, at: int, reason: str) -> NoReturn:
        if at >= len(self.text):
            raise JsonRefused(at + 1, f"malformed JSON: the text ends here, {reason}")
        raise JsonRefused(at + 1, f"malformed JSON: {reason}, found {self.text[at : at + 12]!r}")
