"""Cuts a text into steps. Pure, named and versioned: a trace remembers which one cut it.

Nothing is lost: each step with the separator before it, one after the other, gives the text back. A segmenter that
should cut otherwise gets a new version and a new name, and its steps make new traces; labels never move.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Piece(NamedTuple):
    separator: str
    text: str


_LINES = re.compile(r"\s*\n\s*")
_BLANK_LINES = re.compile(r"\s*\n[ \t\r]*\n\s*")
_SENTENCES = re.compile(r"(?<=[.!?])[ \t\r\n]+(?=[A-Z\\$(\[])")
_NUMBERED = re.compile(r"\s*(?:^|\n)[ \t]*(?=\d{1,3}[.)]\s)")
_STEP_K = re.compile(r"\s*(?:^|\n)[ \t]*(?=[Ss][Tt][Ee][Pp]\s+\d{1,3}\b)")


_PATTERNS = {
    "lines 1": _LINES,
    "blank lines 1": _BLANK_LINES,
    "sentences 1": _SENTENCES,
    "numbered list 1": _NUMBERED,
    "step k 1": _STEP_K,
}
NAMES = tuple(_PATTERNS)


def cut(text: str, *, segmenter: str) -> list[Piece]:
    """The steps of a text, each with what stands between it and the one before."""
    pieces: list[Piece] = []
    separator = ""
    for between, body in _between(_PATTERNS[segmenter], text):
        separator += between
        if body.strip():
            pieces.append(Piece(separator, body))
            separator = ""
        else:
            separator += body  # no step of its own
    if not pieces:
        return [Piece("", text)]
    pieces[-1] = Piece(pieces[-1].separator, pieces[-1].text + separator)
    return pieces


def _between(pattern: "re.Pattern[str]", text: str) -> Iterator[tuple[str, str]]:
    """What matched, and the text up to the next match."""
    separator, start = "", 0
    for match in pattern.finditer(text):
        yield separator, text[start : match.start()]
        separator, start = match.group(), match.end()
    yield separator, text[start:]


def join(pieces: list[Piece]) -> str:
    return "".join(piece.separator + piece.text for piece in pieces)


def choose(text: str) -> str:
    """The segmenter that fits a text for which none was named."""
    if len(_STEP_K.findall(text)) > 1:
        return "step k 1"
    if len(_BLANK_LINES.findall(text.strip())) > 1:
        return "blank lines 1"
    return "lines 1" if "\n" in text.strip() else "sentences 1"
