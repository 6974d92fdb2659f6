"""JSON as strict as the data deserves: what two programs could read differently is refused, with its place.

The fast way is msgspec's. Only a line that it refuses, or that looks suspicious, is walked character by character to
find the place. Refused beside malformed JSON and wrong types: a key given twice, the NUL character and half a surrogate
pair (no database column holds them on both engines), NaN and infinities, bytes that are not UTF-8, and nesting beyond
any honest record.
"""

import json
import re
from typing import Any, NoReturn, TypeVar

import msgspec

DEPTH_LIMIT = 200
NUMBER_LIMIT = 1000  # characters: longer ones are no numbers but a way to keep a program busy
_T = TypeVar("_T")
_Path = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null")
_PATH_STEP = re.compile(r"\.([A-Za-z_][A-Za-z_0-9]*)|\[(\d+|\.\.\.)\]")
_NUL = rb"\u0000"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class JsonRefused(Exception):
    """Why a text is not taken, and the column (in characters, from 1)."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(f"column {column}: {reason}")
        self.column = column
        self.reason = reason


class RecordMisfit(Exception):
    """A value that is good JSON and no good record: which value, and why."""

    def __init__(self, path: "_Path", reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason

    def in_text(self, line: bytes) -> JsonRefused:
        offsets = locate_values(line)
        path = self.path
        while path not in offsets:
            path = path[:-1]
        return JsonRefused(offsets[path] + 1, self.reason)


def misfit_from_error(error: msgspec.ValidationError) -> RecordMisfit:
    """What the library says of a value that was decoded already."""
    return RecordMisfit(*_parse_error_path(error))


def _parse_error_path(error: Exception) -> "tuple[_Path, str]":
    reason, _, place = str(error).partition(" - at `$")
    reason = reason.replace("Invalid enum value", "not one of the values allowed:")
    place = place.rstrip("`").lstrip(".")
    path = tuple(name or int(index) for name, index in _PATH_STEP.findall(f".{place}") if index != "...")
    return path, f"{reason}, in {place}" if place else reason


def decode(line: bytes, decoder: "msgspec.json.Decoder[_T]") -> _T:
    """The record in the line. Keys given twice go through here unseen: `check` finds them."""
    try:
        record = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _raise_with_column(line, error)
    if _NUL in line:
        locate_values(line)
    return record


def check_strictness(line: bytes) -> None:
    """Refuse what `decode` may have overlooked, in keys that it does not know or gave the last value of."""
    try:
        text = line.decode()
        json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
    except (ValueError, RecursionError):
        locate_values(line)
        raise
    if _SURROGATE.search(line):
        locate_values(line)


def locate_values(line: bytes) -> "dict[_Path, int]":
    """Walk the whole text, refuse what is wrong with it at its place; where all is well, the offset of each value."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise JsonRefused(column, f"the byte 0x{line[error.start]:02x} is not UTF-8: save the file as UTF-8") from error
    walk = _Walk(text)
    end = walk.value(walk.after_space(0), ())
    if walk.after_space(end) != len(text):
        raise JsonRefused(walk.after_space(end) + 1, "more text after the end of the record")
    return walk.offsets


def _raise_with_column(line: bytes, error: Exception) -> NoReturn:
    """The library says what is wrong by path; people need a column."""
    offsets = locate_values(line)
    path, reason = _parse_error_path(error)
    while path not in offsets:
        path = path[:-1]
    raise JsonRefused(offsets[path] + 1, reason) from error


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class _Walk:
    """One pass over a text that remembers where each value begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offsets: dict[_Path, int] = {}

    def after_space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, path: _Path) -> int:
        """Walk the value that begins here; where it ends."""
        self.offsets[path] = at
        if len(path) > DEPTH_LIMIT:
            raise JsonRefused(at + 1, f"nested more than {DEPTH_LIMIT} levels deep")
        match self.text[at : at + 1]:
            case "{":
                return self._members(at, path)
            case "[":
                return self._items(at, path)
            case '"':
                return self._string(at)[1]
            case _:
                return self._scalar(at)

    def _members(self, at: int, path: _Path) -> int:
        names: set[str] = set()
        at = self.after_space(at + 1)
        if self.text[at : at + 1] == "}":
            return at + 1
        while True:
            name, end = self._string(at)
            if name in names:
                raise JsonRefused(at + 1, f"the key {json.dumps(name)} is given twice")
            names.add(name)
            at = self._expect(":", end)
            at = self.after_space(self.value(at, (*path, name)))
            if self.text[at : at + 1] == "}":
                return at + 1
            at = self._expect(",", at)

    def _items(self, at: int, path: _Path) -> int:
        at = self.after_space(at + 1)
        if self.text[at : at + 1] == "]":
            return at + 1
        index = 0
        while True:
            at = self.after_space(self.value(at, (*path, index)))
            if self.text[at : at + 1] == "]":
                return at + 1
            at = self._expect(",", at)
            index += 1

    def _expect(self, mark: str, at: int) -> int:
        """The mark, with space around it; where what comes after it begins."""
        at = self.after_space(at)
        if self.text[at : at + 1] != mark:
            self._malformed(at, f"expected {mark!r}")
        return self.after_space(at + 1)

    def _string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self.text, at)
        if match is None:
            self._malformed(at, "expected a string" if self.text[at : at + 1] != '"' else "this string is not whole")
        found: str = json.loads(match.group())
        for character in found:
            if character == "\0":
                raise JsonRefused(at + 1, "a NUL character (\\u0000) in this string: databases cannot hold it")
            if "\ud800" <= character <= "\udfff":
                raise JsonRefused(at + 1, f"half a surrogate pair (\\u{ord(character):04x}) in this string")
        return found, match.end()

    def _scalar(self, at: int) -> int:
        match = _SCALAR.match(self.text, at)
        if match is None:
            self._malformed(at, "expected a value")
        if match.end() - at > NUMBER_LIMIT:
            raise JsonRefused(at + 1, f"a number of {match.end() - at:,} characters")
        return match.end()

    def _malformed(self, at: int, reason: str) -> NoReturn:
        if at >= len(self.text):
            raise JsonRefused(at + 1, f"malformed JSON: the text ends here, {reason}")
        raise JsonRefused(at + 1, f"malformed JSON: {reason}, found {self.text[at : at + 12]!r}")
