"""Split a text into steps. Segmenters are named and versioned; a trace records the one that split it.

No text is lost: the separators and steps, joined in order, give the text back. A segmenter whose rule changes gets a
new version and a new name; its steps make new traces, and labels stay with the old ones.

Fenced code and displayed formulas are never split. A line keeps its indentation. Every rule runs in linear time.

A user can also name a separator: the segmenter `separator 1: ###` splits at each "###". In its name, `\\n`, `\\t` and
`\\\\` are a line break, a tab and a backslash.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

BEST_FIT = "best fit"  # chooses a segmenter for each text, also inside long messages of agents
SEPARATOR_PREFIX = "separator 1: "
MAX_SEPARATOR = 40  # characters as typed


class UnknownSegmenter(Exception):
    """No segmenter has this name."""


class TextPiece(NamedTuple):
    separator: str
    text: str


_Span = tuple[int, int]
_SPACE = r"[ \t\r\n]"
_NEW_LINES = re.compile(rf"(?<!{_SPACE})[ \t\r]*+\n(?:[ \t\r]*+\n)*+")
_SENTENCES = re.compile(
    # An abbreviation and the number of a list item do not end a sentence.
    rf"(?:(?<=[.!?])|(?<=[.!?][\"”’)]))(?<!\b(?:Mr|Dr|Eq|vs)\.)(?<!\bFig\.)(?<!\b[ei]\.[ge]\.)(?<!\n\d\.)(?<!\A\d\.)"
    rf"{_SPACE}++(?=[A-Z\\$(\[\"“])"
    # Chinese and Japanese have no space between sentences.
    rf"|(?:(?<=[。！？])(?![”’」』）。！？])|(?<=[。！？][”’」』）])){_SPACE}*+(?!\Z)"
)
_COUNT = r"[一二三四五六七八九十百\d]{1,4}"
_STEP_K = re.compile(
    rf"[ \t]*+(?:#{{1,6}}[ \t]*+)?(?:\*\*|__)?"
    rf"(?:(?:[Ss]tep|STEP)[ \t]*+\d{{1,3}}\b|第\s*{_COUNT}\s*步|步骤\s*{_COUNT})"
)
_NUMBERED = re.compile(r"[ \t]{0,3}(?:\*\*)?(\d{1,3})[.)](?:\*\*)?\s")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]")
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\\": "\\"}
_ESCAPE = re.compile(r"\\(?:n|t|\\)")
_MARKS = re.compile(r"^[ \t]*+(?P<fence>```|~~~)|\$\$|\\\[|\\\]|\\(?P<side>begin|end)\{(?P<name>\w{1,20}\*?)\}", re.M)


def cut_text(text: str, *, segmenter: str) -> list[TextPiece]:
    """Split a text into steps, each with the separator before it."""
    pieces: list[TextPiece] = []
    separator = ""
    for between, body in _split_at(_get_rule(segmenter)(text), text):
        separator += between
        if body.strip():
            pieces.append(TextPiece(separator, body))
            separator = ""
        else:
            separator += body  # blank text is not a step
    if not pieces:
        return [TextPiece("", text)]
    pieces[-1] = TextPiece(pieces[-1].separator, pieces[-1].text + separator)
    return pieces


def choose_segmenter(text: str) -> str:
    """Choose the segmenter that fits a text."""
    begins = [0, *(end for _, end in _lines(text))]
    if sum(_STEP_K.match(text, begin) is not None for begin in begins) > 1:
        return "step k 2"
    numbers = [int(match.group(1)) for begin in begins if (match := _NUMBERED.match(text, begin))]
    if len(numbers) > 2 and numbers == list(range(1, len(numbers) + 1)):
        return "numbered list 2"
    stripped = text.strip()
    if len(list(_blank_lines(stripped))) > 1:
        return "blank lines 2"
    return "lines 2" if next(_lines(stripped), None) else "sentences 2"


def check_segmenter(name: str) -> None:
    """Raise `UnknownSegmenter`, with the known names, unless the name is empty or one that an import accepts."""
    if name not in ("", BEST_FIT):
        _get_rule(name)


def _get_rule(name: str) -> "_Rule":
    if rule := _SEGMENTERS.get(name):
        return rule
    separator = name.removeprefix(SEPARATOR_PREFIX)
    if separator in ("", name):
        raise UnknownSegmenter(
            f'unknown segmenter "{name[:100]}": choose one of {", ".join(SEGMENTER_NAMES)},'
            f" or name a separator: {SEPARATOR_PREFIX}###"
        )
    if len(separator) > MAX_SEPARATOR:
        raise UnknownSegmenter(f"the separator is too long: use up to {MAX_SEPARATOR} characters")
    plain = _ESCAPE.sub(lambda match: _ESCAPES[match.group()], separator)
    return partial(_outside, re.compile(re.escape(plain)))


def _split_at(separators: Iterator[_Span], text: str) -> Iterator[tuple[str, str]]:
    """Yield each separator with the text up to the next one."""
    separator, start = "", 0
    for begin, end in separators:
        yield separator, text[start:begin]
        separator, start = text[begin:end], end
    yield separator, text[start:]


def _outside(pattern: "re.Pattern[str]", text: str) -> Iterator[_Span]:
    """Yield the matches that are outside of every block."""
    blocks = _blocks(text)
    block = next(blocks, None)
    for match in pattern.finditer(text):
        while block and block[1] <= match.start():
            block = next(blocks, None)
        if not block or match.end() <= block[0]:
            yield match.span()


def _lines(text: str) -> Iterator[_Span]:
    return _outside(_NEW_LINES, text)


def _blank_lines(text: str) -> Iterator[_Span]:
    return ((begin, end) for begin, end in _lines(text) if text.count("\n", begin, end) > 1)


def _lines_before(pattern: "re.Pattern[str]", text: str) -> Iterator[_Span]:
    return ((begin, end) for begin, end in _lines(text) if pattern.match(text, end))


_Rule = Callable[[str], Iterator[_Span]]
_SEGMENTERS: dict[str, _Rule] = {
    "lines 2": _lines,
    "blank lines 2": _blank_lines,
    "sentences 2": partial(_outside, _SENTENCES),
    "numbered list 2": partial(_lines_before, _NUMBERED),
    "step k 2": partial(_lines_before, _STEP_K),
    "headings 1": partial(_lines_before, _HEADING),
}
SEGMENTER_NAMES = tuple(_SEGMENTERS)


def _blocks(text: str) -> Iterator[_Span]:
    """Yield the span of each block. A block that is never closed is not a block."""
    marks = list(_MARKS.finditer(text))
    last = {_closes(mark): number for number, mark in enumerate(marks)}
    opened: re.Match[str] | None = None
    for number, mark in enumerate(marks):
        if opened is None:
            opened = mark if last.get(_opens(mark), -1) > number else None
        elif _closes(mark) == _opens(opened):
            yield opened.start(), mark.end()
            opened = None


def _opens(mark: "re.Match[str]") -> str:
    """Return the mark that closes the block opened by this one."""
    opening = mark["fence"] or mark.group()
    if mark["name"]:
        return f"\\end{{{mark['name']}}}" if mark["side"] == "begin" else ""
    return {"\\[": "\\]", "\\]": ""}.get(opening, opening)


def _closes(mark: "re.Match[str]") -> str:
    return mark["fence"] or mark.group()
