"""What readers of labelled formats share: turns from ratings, steps from texts."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import Meta

from labeling.importing.records import JudgmentRecord, OptionRecord, StepRecord, TurnRecord
from labeling.importing.segmenters import Piece

# What a trace, a problem or a model is called: two short ones and what joins them make one name.
Name = Annotated[str, Meta(max_length=200)]
ShortName = Annotated[str, Meta(max_length=80)]


def steps(texts: Iterable[str]) -> list[StepRecord]:
    return [StepRecord([OptionRecord(text)]) for text in texts]


def cut_steps(pieces: Iterable[Piece]) -> list[StepRecord]:
    return [StepRecord([OptionRecord(piece.text)], separator=piece.separator) for piece in pieces]


def turns(texts: Sequence[str], ratings: Sequence[int | None]) -> list[TurnRecord]:
    """One turn for each rating; texts beyond the last one were not looked at."""
    return [turn(position, texts[position], rating) for position, rating in enumerate(ratings)]


def first_error(texts: Sequence[str], index: int | None) -> list[TurnRecord]:
    """Right up to the first error, and nothing said of what comes after it. None: right to the end."""
    return turns(texts, [1] * len(texts) if index is None else [1] * index + [-1])


def finish_reason(index: int | None) -> str:
    return "solution" if index is None else "found_error"


def turn(position: int, text: str, rating: int | None) -> TurnRecord:
    chosen = None if rating == -1 else 0
    return TurnRecord(position, shown=[JudgmentRecord(text, rating)], chosen=chosen)
