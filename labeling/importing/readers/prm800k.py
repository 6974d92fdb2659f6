"""PRM800K, both phases, both ways: a line of the file to a record, and a record to the line it came from.

Composing is part of reading: where the fields of a record do not give its line back byte for byte (other spacing, other
key order, keys that nobody knows, an integer score), the line itself goes along as the record's residue.
"""

import datetime as dt
import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, BinaryIO, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from labeling.importing.readers import lines, strictjson
from labeling.importing.records import (
    LIVE,
    PREGENERATED,
    BadLine,
    JudgmentRecord,
    OptionRecord,
    ProblemRecord,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    TurnRecord,
    WrittenStep,
)

_Rating = Literal[-1, 0, 1] | None
_Small = Annotated[int, Meta(ge=-(2**15), le=2**15 - 1)] | None
_Integer = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None
_Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None
_Index = Annotated[int, Meta(ge=0, le=2**15 - 1)] | None
_Labeler = Annotated[str, Meta(max_length=100)] | None
_Reason = Annotated[str, Meta(max_length=32)] | None


class _Completion(Struct, gc=False):
    text: str
    rating: _Rating = None
    flagged: bool | None = None


class _Human(Struct, gc=False):
    text: str
    rating: _Small = None
    flagged: bool | None = None
    corrected_rating: _Small = None


class _Step(Struct, gc=False):
    completions: Annotated[list[_Completion], Meta(max_length=2**15)] | None = None
    human_completion: _Human | None = None
    chosen_completion: _Index = None


class _Label(Struct, gc=False):
    steps: list[_Step]
    total_time: _Long = None
    finish_reason: _Reason = None


class _Question(Struct, gc=False):
    problem: str
    ground_truth_solution: str | UnsetType | None = UNSET
    ground_truth_answer: str | UnsetType | None = UNSET
    pre_generated_steps: list[str] | None = None
    pre_generated_answer: str | None = None
    pre_generated_verifier_score: float | None = None


class _Line(Struct, gc=False):
    question: _Question
    label: _Label
    labeler: _Labeler = None
    timestamp: str | None = None
    generation: _Integer = None
    is_quality_control_question: bool | None = None
    is_initial_screening_question: bool | None = None


_decoder = msgspec.json.Decoder(_Line)


def read(stream: BinaryIO) -> Iterator[TraceRecord | BadLine]:
    """Every record of the file in order, or why there is none at that line."""
    for item in lines.read(stream):
        yield item if isinstance(item, BadLine) else parse(item[1], number=item[0])


def parse(line: bytes, *, number: int) -> TraceRecord | BadLine:
    try:
        record = _record(strictjson.decode(line, _decoder), line)
        record.line = number
        record.digest = hashlib.sha256(line).hexdigest()
        if compose(record) != line:
            strictjson.check(line)
            record.residue = line
    except strictjson.Refused as refused:
        return BadLine(number, refused.column, refused.reason)
    return record


def looks_like(record: object) -> bool:
    """Whether a decoded first record of a file is one of these."""
    return isinstance(record, dict) and {"question", "label"} <= record.keys()


# --- from the line -------------------------------------------------------------------------------------------------


def _record(line: _Line, raw: bytes) -> TraceRecord:
    question = line.question
    is_live = question.pre_generated_steps is None
    return TraceRecord(
        problem=ProblemRecord(
            text=question.problem, answer=question.ground_truth_answer, solution=question.ground_truth_solution
        ),
        steps=[StepRecord([OptionRecord(text)]) for text in question.pre_generated_steps or ()],
        kind=LIVE if is_live else PREGENERATED,
        answer=question.pre_generated_answer,
        verifier_score=question.pre_generated_verifier_score,
        submissions=[_submission(line, raw)],
    )


def _submission(line: _Line, raw: bytes) -> SubmissionRecord:
    return SubmissionRecord(
        labeler=line.labeler,
        submitted_at=_time(line.timestamp, raw),
        generation=line.generation,
        is_quality_control=line.is_quality_control_question,
        is_screening=line.is_initial_screening_question,
        total_ms=line.label.total_time,
        finish_reason=line.label.finish_reason,
        turns=[_turn(position, step, raw) for position, step in enumerate(line.label.steps)],
    )


def _time(text: str | None, raw: bytes) -> dt.datetime | None:
    """Times of the published files name no zone: they are taken for UTC."""
    if text is None:
        return None
    try:
        time = dt.datetime.fromisoformat(text)
        return time.astimezone(dt.UTC) if time.tzinfo else time.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError) as error:
        hint = "not a time: expected for example 2022-07-13T18:55:54.496450"
        raise _refusal(raw, ("timestamp",), hint) from error


def _turn(position: int, step: _Step, raw: bytes) -> TurnRecord:
    completions, human = step.completions, step.human_completion
    if step.chosen_completion is not None and step.chosen_completion >= len(completions or ()):
        raise _refusal(
            raw,
            ("label", "steps", position, "chosen_completion"),
            f"completion {step.chosen_completion} was chosen (counted from 0), but there are {len(completions or ())}",
        )
    return TurnRecord(
        position=position,
        shown=None if completions is None else [JudgmentRecord(c.text, c.rating, c.flagged) for c in completions],
        chosen=step.chosen_completion,
        written=None if human is None else WrittenStep(human.text, human.rating, human.flagged, human.corrected_rating),
    )


def _refusal(raw: bytes, path: tuple[str | int, ...], reason: str) -> strictjson.Refused:
    return strictjson.Refused(strictjson.examine(raw)[path] + 1, f"{reason}, in {path[-1]}")


# --- back to the line ----------------------------------------------------------------------------------------------


def compose(record: TraceRecord) -> bytes:
    """The line of the record, without its line feed, from the fields alone."""
    submission = record.submissions[0]
    return json.dumps(
        {
            "labeler": submission.labeler,
            "timestamp": submission.submitted_at and _timestamp(submission.submitted_at),
            "generation": submission.generation,
            "is_quality_control_question": submission.is_quality_control,
            "is_initial_screening_question": submission.is_screening,
            "question": _question(record),
            "label": {
                "steps": [_step(turn) for turn in submission.turns],
                "total_time": submission.total_ms,
                "finish_reason": submission.finish_reason,
            },
        }
    ).encode("ascii")


def _timestamp(time: dt.datetime) -> str:
    """Without a zone and with six digits: a strict public parser dies on anything else."""
    return time.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def _question(record: TraceRecord) -> dict[str, object]:
    problem = record.problem
    question: dict[str, object] = {"problem": problem.text}
    if problem.solution is not UNSET:
        question["ground_truth_solution"] = problem.solution
    if problem.answer is not UNSET:
        question["ground_truth_answer"] = problem.answer
    if record.kind == PREGENERATED:
        question["pre_generated_steps"] = [step.options[0].text for step in record.steps]
        question["pre_generated_answer"] = record.answer
        question["pre_generated_verifier_score"] = record.verifier_score
    return question


def _step(turn: TurnRecord) -> dict[str, object]:
    return {
        "completions": None if turn.shown is None else [_completion(judgment) for judgment in turn.shown],
        "human_completion": None if turn.written is None else _human(turn.written),
        "chosen_completion": turn.chosen,
    }


def _completion(judgment: JudgmentRecord) -> dict[str, object]:
    return {"text": judgment.text, "rating": judgment.rating, "flagged": judgment.flagged}


def _human(written: WrittenStep) -> dict[str, object]:
    human: dict[str, object] = {
        "text": written.text,
        "rating": written.rating,
        "source": "human",
        "flagged": written.flagged,
    }
    if written.corrected_rating is not None:
        human["corrected_rating"] = written.corrected_rating
    return human
