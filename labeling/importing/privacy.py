"""The texts of a record, and the record with what may be somebody's own masked in each of them. Pure."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from labeling.importing.records import OptionRecord, PartRecord, SubmissionRecord, TraceRecord
from labeling.texts.private import KINDS, found_in, mask

Private = Literal["count", "mask", "refuse"]
PRIVATE: tuple[Private, ...] = ("count", "mask", "refuse")
_WORDS = dict(zip(KINDS, ("an e-mail address", "a telephone number", "a key"), strict=True))


def texts(record: TraceRecord) -> Iterator[str]:
    """Every text that people or programs wrote; what a rating repeats of a step is told once."""
    problem = record.problem
    yield problem.text
    yield from (text for text in (problem.answer, problem.solution, record.answer) if isinstance(text, str))
    seen: set[str] = set()
    for step in record.steps:
        for option in step.options:
            seen.add(option.text)
            yield option.text
            yield from (part.text for part in option.parts if part.text != option.text)
    for submission in record.submissions:
        yield from _of_submission(submission, seen)


def _of_submission(submission: SubmissionRecord, seen: set[str]) -> Iterator[str]:
    yield submission.finish_note
    for turn in submission.turns:
        yield turn.comment
        if turn.written is not None:
            yield turn.written.text
        for judgment in turn.shown or ():
            yield judgment.reason
            if judgment.text not in seen:
                yield judgment.text


def reason(record: TraceRecord) -> str:
    """Why a record is refused; empty where nothing was found."""
    return ", ".join(_WORDS[kind] for kind in found_in(texts(record)))


def masked(record: TraceRecord) -> TraceRecord:
    """A step and the ratings that repeat its text are masked alike, so they still belong together."""
    problem = record.problem
    record.problem = msgspec.structs.replace(
        problem,
        text=mask(problem.text),
        answer=mask(problem.answer) if isinstance(problem.answer, str) else problem.answer,
        solution=mask(problem.solution) if isinstance(problem.solution, str) else problem.solution,
    )
    record.answer = mask(record.answer) if record.answer else record.answer
    for step in record.steps:
        step.options = [_option(option) for option in step.options]
    for submission in record.submissions:
        _mask_submission(submission)
    record.residue = None  # the bytes of the file hold it still
    return record


def _option(option: OptionRecord) -> OptionRecord:
    parts = tuple(_part(part) for part in option.parts)
    return msgspec.structs.replace(option, text=mask(option.text), parts=parts)


def _part(part: PartRecord) -> PartRecord:
    return msgspec.structs.replace(part, text=mask(part.text))


def _mask_submission(submission: SubmissionRecord) -> None:
    submission.finish_note = mask(submission.finish_note)
    for turn in submission.turns:
        turn.comment = mask(turn.comment)
        if turn.written is not None:
            turn.written.text = mask(turn.written.text)
        for judgment in turn.shown or ():
            judgment.text, judgment.reason = mask(judgment.text), mask(judgment.reason)
