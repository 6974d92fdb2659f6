"""Split and merge the steps of a trace by hand.

The separators and texts of the new steps, joined in order, are those of the old steps. Only steps with one text and
without parts, such as tool calls, can be changed, and only steps of the same message and kind can be merged.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, count, pairwise

import msgspec

from formats.messages import name_segmenters
from formats.records import OptionRecord, StepChange, StepRecord

SEGMENTER = "by hand 1"
MAX_STEPS = 400  # of a trace that is changed by hand
_MAX_SEGMENTER = 100  # characters
UNKNOWN_SEPARATOR = "\n"  # joins merged steps if the file does not say what was between them
_TWO_CHARACTERS = re.compile(r"\r\n")
_MARK = re.compile(r"<cut[0-9]*>")
_LEADING_SPACE = re.compile(r"\s*\n|\s*")  # the indentation of a line stays with the line


class InvalidStepChange(Exception):
    """A change that is not possible. `code` says why, `position` is the step."""

    def __init__(self, code: str, position: int) -> None:
        self.code, self.position = code, position
        super().__init__(f"step {position}: {code}")


def is_changeable(step: StepRecord) -> bool:
    return step.is_rateable and len(step.options) == 1 and not step.options[0].parts


def may_merge(first: StepRecord, second: StepRecord) -> bool:
    """Tell whether two steps that follow each other can become one."""
    facts = [(step.kind, step.agent, step.source_position, step.options[0].origin) for step in (first, second)]
    return is_changeable(first) and is_changeable(second) and facts[0] == facts[1]


def digest_steps(steps: Sequence[StepRecord]) -> str:
    """Digest the steps that a person changes, to notice when a file or its segmenter gives other steps. Pixels of
    images do not count, because a preview decodes only the first images."""
    options = [[_without_pixels(option) for option in step.options] for step in steps]
    compared = [msgspec.structs.replace(step, options=own) for step, own in zip(steps, options, strict=True)]
    return hashlib.sha256(msgspec.json.encode(compared)).hexdigest()


def _without_pixels(option: OptionRecord) -> OptionRecord:
    if not any(part.digest for part in option.parts):
        return option
    parts = tuple(msgspec.structs.replace(part, digest="") for part in option.parts)
    return msgspec.structs.replace(option, parts=parts)


def name_changed_segmenter(before: str) -> str:
    """Return the segmenter that a trace with changed steps records."""
    name = before if before.endswith(SEGMENTER) else name_segmenters(before, SEGMENTER)
    return name if len(name) <= _MAX_SEGMENTER else SEGMENTER


def change_steps(steps: Sequence[StepRecord], changes: Iterable[StepChange]) -> list[StepRecord]:
    """Return the steps after the changes. Raises `InvalidStepChange`."""
    by_position = {change.position: change for change in changes}
    if unknown := next((position for position in by_position if not 0 <= position < len(steps)), None):
        raise InvalidStepChange("no_such_step", unknown)
    has_separators = any(step.separator for step in steps)
    changed: list[StepRecord] = []
    for position, step in enumerate(steps):
        change = by_position.get(position, StepChange(position))
        pieces = _split_step(step, change)
        if change.merges:
            if not position or not may_merge(steps[position - 1], step):
                raise InvalidStepChange("cannot_merge", position)
            joint = step.separator if has_separators else UNKNOWN_SEPARATOR
            changed[-1] = _replace_text(changed[-1], _get_text(changed[-1]) + joint + _get_text(pieces.pop(0)))
        changed += pieces
    return changed


def find_cuts(text: str, marked: str, *, mark: str) -> tuple[int, ...] | None:
    """Return the places of the marks that a person put into the text, None if the person changed the text itself.

    Browsers change the line breaks of a text that is edited, so line breaks of all kinds are equal.
    """
    pieces = _normalize_breaks(marked).split(mark)
    if "".join(pieces) != _normalize_breaks(text):
        return None
    # How many characters of each line break the normalized text lacks, by the place after the break in that text.
    shorter = [found.end() - n for n, found in enumerate(_TWO_CHARACTERS.finditer(text), 1)]
    places = accumulate(map(len, pieces[:-1]))
    return tuple(place + bisect_right(shorter, place) for place in places)


def insert_marks(text: str, cuts: Iterable[int], *, mark: str) -> str:
    """Return the text with a mark at each cut, as `find_cuts` reads it."""
    places = [0, *sorted(cuts), len(text)]
    return mark.join(text[start:end] for start, end in pairwise(places))


def choose_mark(texts: Iterable[str]) -> str:
    """Return a mark that is in none of the texts. It cannot overlap itself, so each mark is found where it was put."""
    found = {mark for text in texts for mark in _MARK.findall(text)}
    return next(mark for n in count(1) if (mark := f"<cut{n if n > 1 else ''}>") not in found)


def _split_step(step: StepRecord, change: StepChange) -> list[StepRecord]:
    if not change.cuts:
        return [step]
    if not is_changeable(step):
        raise InvalidStepChange("cannot_split", change.position)
    text = _get_text(step)
    pieces: list[StepRecord] = []
    separator, start = step.separator, 0
    for cut in sorted(change.cuts):
        body = text[start:cut].rstrip() if 0 < cut < len(text) else ""
        after = _LEADING_SPACE.match(text, cut)
        if not body or after is None:
            raise InvalidStepChange("empty_step", change.position)
        pieces.append(_replace_text(step, body, separator=separator))
        separator, start = text[start + len(body) : after.end()], after.end()
    if not text[start:].strip():
        raise InvalidStepChange("empty_step", change.position)
    return [*pieces, _replace_text(step, text[start:], separator=separator)]


def _get_text(step: StepRecord) -> str:
    return step.options[0].text


def _replace_text(step: StepRecord, text: str, *, separator: str | None = None) -> StepRecord:
    option = OptionRecord(text, step.options[0].origin)
    between = step.separator if separator is None else separator
    return StepRecord([option], step.kind, step.is_rateable, between, step.source_position, step.agent)


def _normalize_breaks(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
