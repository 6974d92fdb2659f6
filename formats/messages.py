"""Split the text of one message of a chat or an agent into several steps.

The steps of a message have its `source_position`. Their separators and texts, joined in order, give the message's text
back. Tool calls stay together in the last step; the text before them is split.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple

from formats import records, segmenters
from formats.records import OptionRecord, PartRecord, StepRecord

LONG_TEXT = 1000  # characters of a text that `BEST_FIT` splits
_FENCE = "```"


class StepPlace(NamedTuple):
    """What tells which steps are parts of one message."""

    source_position: int | None
    is_rateable: bool


class MessagePart(NamedTuple):
    """The place of a step inside its message. All three count from 1."""

    message: int
    part: int
    n_parts: int


def find_message_parts(places: Iterable[StepPlace]) -> Iterator[MessagePart | None]:
    """Yield the part that each step is of its message, None if it is a whole message or has none."""
    for place, group in groupby(places):
        n = len(list(group))
        for part in range(1, n + 1):
            is_part = n > 1 and place.source_position is not None
            yield MessagePart((place.source_position or 0) + 1, part, n) if is_part else None


def split_messages(steps: Iterable[StepRecord], segmenter: str) -> tuple[list[StepRecord], str]:
    """Split the texts of the model in every message, and return the names of the segmenters that were used."""
    split: list[StepRecord] = []
    names: set[str] = set()
    for step in steps:
        pieces, name = split_message(step, segmenter) if step.is_rateable else ([step], "")
        split += pieces
        names.update([name] if name else [])
    return split, ", ".join(sorted(names))


def split_message(step: StepRecord, segmenter: str) -> tuple[list[StepRecord], str]:
    """Split one message, and return the segmenter, "" if the message stays one step."""
    option = step.options[0]
    text = _find_leading_text(option)
    if not text or (segmenter == segmenters.BEST_FIT and len(text) <= LONG_TEXT):
        return [step], ""
    name = segmenters.choose_segmenter(text) if segmenter == segmenters.BEST_FIT else segmenter
    pieces = records.cut_steps(text, segmenter=name)
    if len(pieces) == 1:
        return [step], ""
    if rest := option.parts[len(_take_texts(option.parts)) :]:
        pieces.append(_make_last_step(step, text, rest))
    elif step.kind == "action":
        _mark_commands(pieces)
    for piece in pieces:
        piece.source_position, piece.agent = step.source_position, step.agent
    pieces[0].separator = step.separator + pieces[0].separator
    return pieces, name


def name_segmenters(of_messages: str, of_texts: str) -> str:
    """Return the name that a trace records: how the messages became steps, then how their texts were split."""
    return ", ".join(filter(None, (of_messages, of_texts)))


def _find_leading_text(option: OptionRecord) -> str:
    """Return the text before the first part that is not text, "" if the option does not begin with it."""
    if not option.parts:
        return option.text
    text = "\n".join(part.text for part in _take_texts(option.parts))
    return text if option.text.startswith(text) else ""


def _take_texts(parts: Sequence[PartRecord]) -> list[PartRecord]:
    return list(takewhile(lambda part: part.kind == "text", parts))


def _make_last_step(step: StepRecord, text: str, rest: tuple[PartRecord, ...]) -> StepRecord:
    """Make the step of the parts after the text."""
    shown = step.options[0].text[len(text) :]
    called = shown.lstrip() or shown
    return StepRecord([OptionRecord(called, parts=rest)], step.kind, separator=shown[: len(shown) - len(called)])


def _mark_commands(pieces: list[StepRecord]) -> None:
    """Mark the steps whose text has the command of the message, otherwise the last one, as actions."""
    commands = [piece for piece in pieces if _FENCE in piece.options[0].text]
    for piece in commands or pieces[-1:]:
        piece.kind = "action"
