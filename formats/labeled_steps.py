"""Helpers of the readers of labeled formats: make steps from texts, and turns and submissions from ratings."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import Meta

from formats.records import JudgmentRecord, OptionRecord, StepRecord, SubmissionRecord, TurnRecord
from formats.segmenters import TextPiece

# The name of a trace, a problem or a model. Two short names and their separator fit into one name.
RecordName = Annotated[str, Meta(max_length=200)]
ShortRecordName = Annotated[str, Meta(max_length=80)]


def make_steps(texts: Iterable[str]) -> list[StepRecord]:
    return [StepRecord([OptionRecord(text)]) for text in texts]


def make_cut_steps(pieces: Iterable[TextPiece]) -> list[StepRecord]:
    return [StepRecord([OptionRecord(piece.text)], separator=piece.separator) for piece in pieces]


def make_turns(texts: Sequence[str], ratings: Sequence[int | None]) -> list[TurnRecord]:
    """Make one turn for each rating. The texts after the last rating are unrated."""
    return [make_turn(position, texts[position], rating) for position, rating in enumerate(ratings)]


def make_submission_to_first_error(
    texts: Sequence[str], index: int | None, *, labeler: str, finish_note: str = ""
) -> SubmissionRecord:
    """Rate every step before the first error positive and none after it. With None, all steps are positive."""
    return SubmissionRecord(
        make_turns(texts, [1] * len(texts) if index is None else [1] * index + [-1]),
        labeler=labeler,
        finish_reason="solution" if index is None else "found_error",
        finish_note=finish_note,
    )


def make_turn(position: int, text: str, rating: int | None) -> TurnRecord:
    chosen = None if rating == -1 else 0
    return TurnRecord(position, shown=[JudgmentRecord(text, rating)], chosen=chosen)
