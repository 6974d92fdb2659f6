"""What readers of labelled formats share: turns from ratings, steps from texts."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import Meta

from formats.records import JudgmentRecord, OptionRecord, StepRecord, TurnRecord
from formats.segmenters import TextPiece

# What a trace, a problem or a model is called: two short ones and what joins them make one name.
RecordName = Annotated[str, Meta(max_length=200)]
ShortRecordName = Annotated[str, Meta(max_length=80)]


def make_steps(texts: Iterable[str]) -> list[StepRecord]:
    return [StepRecord([OptionRecord(text)]) for text in texts]


def make_cut_steps(pieces: Iterable[TextPiece]) -> list[StepRecord]:
    return [StepRecord([OptionRecord(piece.text)], separator=piece.separator) for piece in pieces]


def make_turns(texts: Sequence[str], ratings: Sequence[int | None]) -> list[TurnRecord]:
    """One turn for each rating; texts beyond the last one were not looked at."""
    return [make_turn(position, texts[position], rating) for position, rating in enumerate(ratings)]


def make_turns_to_first_error(texts: Sequence[str], index: int | None) -> list[TurnRecord]:
    """Right up to the first error, and nothing said of what comes after it. None: right to the end."""
    return make_turns(texts, [1] * len(texts) if index is None else [1] * index + [-1])


def choose_finish_reason(index: int | None) -> str:
    return "solution" if index is None else "found_error"


def make_turn(position: int, text: str, rating: int | None) -> TurnRecord:
    chosen = None if rating == -1 else 0
    return TurnRecord(position, shown=[JudgmentRecord(text, rating)], chosen=chosen)
