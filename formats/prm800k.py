"""PRM800K, both phases, both ways: a line of the file to a record, and a record to the line it came from.

Composing is part of reading: where the fields of a record do not give its line back byte for byte (other spacing, other
key order, keys that nobody knows, an integer score), the line itself goes along as the record's residue.
"""

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring_ascii as quoted
from typing import Annotated, BinaryIO, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from formats import line_reader, strict_json
from formats.columns import Columns
from formats.records import (
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
from formats.rows import ORIGIN_HERE, CompactRow, ExportRow, RowFacts, parse_cell

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
    for item in line_reader.read_lines(stream):
        yield item if isinstance(item, BadLine) else parse_line(item[1], number=item[0])


def parse_line(line: bytes, *, number: int) -> TraceRecord | BadLine:
    try:
        record = _parse_record(strict_json.decode(line, _decoder), line)
        record.line = number
        record.digest = hashlib.sha256(line).hexdigest()
        if compose_line(record) != line:
            strict_json.check_strictness(line)
            record.residue = line
    except strict_json.JsonRefused as refused:
        return BadLine(number, refused.column, refused.reason)
    return record


def looks_like(record: object) -> bool:
    """Whether a decoded first record of a file is one of these."""
    return isinstance(record, dict) and {"question", "label"} <= record.keys()


# --- from the line -------------------------------------------------------------------------------------------------


def _parse_record(line: _Line, raw: bytes) -> TraceRecord:
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
        submissions=[_parse_submission(line, raw)],
    )


def _parse_submission(line: _Line, raw: bytes) -> SubmissionRecord:
    return SubmissionRecord(
        labeler=line.labeler,
        submitted_at=_parse_time(line.timestamp, raw),
        generation=line.generation,
        is_quality_control=line.is_quality_control_question,
        is_screening=line.is_initial_screening_question,
        total_ms=line.label.total_time,
        finish_reason=line.label.finish_reason,
        turns=[_parse_turn(position, step, raw) for position, step in enumerate(line.label.steps)],
    )


def _parse_time(text: str | None, raw: bytes) -> dt.datetime | None:
    """Times of the published files name no zone: they are taken for UTC."""
    if text is None:
        return None
    try:
        time = dt.datetime.fromisoformat(text)
        return time.astimezone(dt.UTC) if time.tzinfo else time.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError) as error:
        hint = "not a time: expected for example 2022-07-13T18:55:54.496450"
        raise _refuse_at(raw, ("timestamp",), hint) from error


def _parse_turn(position: int, step: _Step, raw: bytes) -> TurnRecord:
    completions, human = step.completions, step.human_completion
    if step.chosen_completion is not None and step.chosen_completion >= len(completions or ()):
        raise _refuse_at(
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


def _refuse_at(raw: bytes, path: tuple[str | int, ...], reason: str) -> strict_json.JsonRefused:
    return strict_json.JsonRefused(strict_json.locate_values(raw)[path] + 1, f"{reason}, in {path[-1]}")


# --- back to the line ----------------------------------------------------------------------------------------------


def compose_line(record: TraceRecord) -> bytes:
    """The line of the record, without its line feed, from the fields alone."""
    submission = record.submissions[0]
    return json.dumps(
        {
            "labeler": submission.labeler,
            "timestamp": submission.submitted_at and _format_timestamp(submission.submitted_at),
            "generation": submission.generation,
            "is_quality_control_question": submission.is_quality_control,
            "is_initial_screening_question": submission.is_screening,
            "question": _compose_question(record),
            "label": {
                "steps": [_compose_step(turn) for turn in submission.turns],
                "total_time": submission.total_ms,
                "finish_reason": submission.finish_reason,
            },
        }
    ).encode("ascii")


def _format_timestamp(time: dt.datetime) -> str:
    """Without a zone and with six digits: a strict public parser dies on anything else."""
    return time.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def _compose_question(record: TraceRecord) -> dict[str, object]:
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


def _compose_step(turn: TurnRecord) -> dict[str, object]:
    return {
        "completions": None if turn.shown is None else [_compose_completion(judgment) for judgment in turn.shown],
        "human_completion": None if turn.written is None else _compose_human(turn.written),
        "chosen_completion": turn.chosen,
    }


def _compose_completion(judgment: JudgmentRecord) -> dict[str, object]:
    return {"text": judgment.text, "rating": judgment.rating, "flagged": judgment.flagged}


def _compose_human(written: WrittenStep) -> dict[str, object]:
    human: dict[str, object] = {
        "text": written.text,
        "rating": written.rating,
        "source": "human",
        "flagged": written.flagged,
    }
    if written.corrected_rating is not None:
        human["corrected_rating"] = written.corrected_rating
    return human


# PRM800K, phase 1 and 2: JSON Lines, byte for byte as they came where they came from such a file.


_COMPLETION_COLUMNS = {"text": "string", "rating": "int64", "flagged": "bool"}
_HUMAN_COLUMNS = {**_COMPLETION_COLUMNS, "source": "string", "corrected_rating": "int64"}
_STEP_COLUMNS = {"completions": [_COMPLETION_COLUMNS], "human_completion": _HUMAN_COLUMNS, "chosen_completion": "int64"}
COLUMNS: Columns = {
    "labeler": "string",
    "timestamp": "string",
    "generation": "int64",
    "is_quality_control_question": "bool",
    "is_initial_screening_question": "bool",
    "question": {
        "problem": "string",
        "ground_truth_solution": "string",
        "ground_truth_answer": "string",
        "pre_generated_steps": ["string"],
        "pre_generated_answer": "string",
        "pre_generated_verifier_score": "float64",
    },
    "label": {"steps": [_STEP_COLUMNS], "total_time": "int64", "finish_reason": "string"},
}
_QUOTED_SEPARATOR = "\\u001f"  # the separator of plain texts, as JSON has it
_WORDS = {None: "null", True: "true", False: "false"}
# What follows the text of a turn's only option, by its cell.
_tail_cache: dict[str, str] = {}


def write(records: Iterable[TraceRecord]) -> Iterator[bytes]:
    """A line for each record."""
    for record in records:
        yield (record.residue or compose_line(record)) + b"\n"


def write_lines(readings: Iterable[ExportRow]) -> Iterator[bytes]:
    """The same of what a manifest reads."""
    for reading in readings:
        line = None if reading.plain is None else _compose_plain_line(reading.facts, reading.plain)
        if line is None:
            record = (
                reading.record
                if reading.facts.origin != ORIGIN_HERE
                else _complete_own_record(reading.facts, reading.record)
            )
            yield (record.residue or compose_line(record)) + b"\n"
        else:
            yield line.encode("ascii")


def _compose_plain_line(facts: RowFacts, plain: CompactRow) -> str | None:
    """None: not as plain as it looked, or none of the usual kind."""
    if plain.more or facts.residue is not None or facts.kind == LIVE:
        return None
    texts = quoted(plain.texts)
    options = texts[1:-1].split(_QUOTED_SEPARATOR)
    if len(options) != plain.n_texts or facts.n_steps > len(options):
        return None
    tails = [_tail_cache.get(each) or _compose_tail(each) for each in plain.cells.split(";")]
    steps = ", ".join([f'{{"completions": [{{"text": "{text}"{tail}' for text, tail in zip(options, tails)])  # noqa: B905  a rater may stop early
    own = texts if facts.n_steps == len(options) else f'"{_QUOTED_SEPARATOR.join(options[: facts.n_steps])}"'
    return (
        f'{{"labeler": {_quote_text(facts.labeler)}, "timestamp": {_quote_timestamp(facts.submitted_at)}, '
        f'"generation": {_quote_number(facts.exported_generation)}, '
        f'"is_quality_control_question": {_WORDS[facts.is_quality_control]}, '
        f'"is_initial_screening_question": {_WORDS[facts.is_screening]}, '
        f'"question": {{"problem": {quoted(facts.text)}{_quote_reference(facts)}, '
        f'"pre_generated_steps": [{own.replace(_QUOTED_SEPARATOR, _COMMA)}], '
        f'"pre_generated_answer": {_quote_text(facts.answer)}, '
        f'"pre_generated_verifier_score": {_quote_score(facts.verifier_score)}}}, '
        f'"label": {{"steps": [{steps}], "total_time": {_quote_number(facts.total_ms)}, '
        f'"finish_reason": {_quote_text(facts.finish_reason)}}}}}\n'
    )


_COMMA = '", "'


def _compose_tail(text: str) -> str:
    said = parse_cell(text)
    tail = (
        f', "rating": {_quote_number(said.rating)}, "flagged": {_WORDS[said.flagged]}}}], '
        f'"human_completion": null, "chosen_completion": {_quote_number(said.chosen)}}}'
    )
    return _tail_cache.setdefault(text, tail)


def _complete_own_record(facts: RowFacts, record: TraceRecord) -> TraceRecord:
    """Our own labels as such files have them: what is not known is null and not absent, a round is a number, and where
    a rater could flag and did not, on alternatives and on a step of the rater's own, that is told."""
    problem, submission = record.problem, record.submissions[0]
    if record.kind != LIVE:
        known = {name: None for name in ("answer", "solution") if getattr(problem, name) is UNSET}
        problem = structs.replace(problem, **known)
    turns = [_complete_own_turn(turn, is_live=record.kind == LIVE) for turn in submission.turns]
    said = structs.replace(submission, turns=turns, generation=facts.exported_generation)
    return structs.replace(record, problem=problem, submissions=[said])


def _complete_own_turn(turn: TurnRecord, *, is_live: bool) -> TurnRecord:
    first = 0 if is_live else 1  # the trace's own step stands first, and is null in such files
    shown = [
        structs.replace(each, flagged=bool(each.flagged)) if place >= first else each
        for place, each in enumerate(turn.shown or ())
    ]
    own = turn.written and structs.replace(turn.written, flagged=bool(turn.written.flagged))
    return structs.replace(turn, shown=turn.shown and shown, written=own)


def _quote_reference(facts: RowFacts) -> str:
    if facts.origin == ORIGIN_HERE:
        facts = facts._replace(has_reference_solution=True, has_reference_answer=True)
    solution = (
        f', "ground_truth_solution": {_quote_text(facts.reference_solution)}' if facts.has_reference_solution else ""
    )
    answer = f', "ground_truth_answer": {_quote_text(facts.reference_answer)}' if facts.has_reference_answer else ""
    return solution + answer


def _quote_text(value: str | None) -> str:
    return "null" if value is None else quoted(value)


def _quote_number(value: int | None) -> str:
    return "null" if value is None else str(value)


def _quote_score(value: float | None) -> str:
    return "null" if value is None else json.dumps(value)


def _quote_timestamp(at: dt.datetime | None) -> str:
    """Without a zone and with six digits: a strict public parser dies on anything else."""
    if at is None:
        return "null"
    utc = at if at.tzinfo is dt.UTC else at.astimezone(dt.UTC)
    return f'"{utc.replace(tzinfo=None).isoformat(timespec="microseconds")}"'
