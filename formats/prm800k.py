"""PRM800K, phases 1 and 2: JSON Lines with one rater's work on one trace per line. Reads and writes.

A line that was read is written back byte for byte. Reading includes composing: if the fields of a record do not
reproduce its line (other spacing or key order, unknown keys, an integer score), the record keeps the line as `residue`.
"""

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from json.encoder import encode_basestring_ascii as _quote
from typing import Annotated, BinaryIO, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from formats import raw_values, strict_json
from formats.examples import MACHINE_COLUMNS, Columns, describe_machine
from formats.raw_values import RawValue
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
    **MACHINE_COLUMNS,  # only in lines of machines and of people who saw their labels
}


# --- reading -------------------------------------------------------------------------------------------------------


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


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and {"question", "label"} <= record.keys()


def read(stream: BinaryIO) -> Iterator[TraceRecord | BadLine]:
    """Read every record of the file in order: a line, an item of an array, or one object over several lines."""
    for value in raw_values.split_values(stream):
        yield value if isinstance(value, BadLine) else parse_value(value)


def parse_value(value: RawValue) -> TraceRecord | BadLine:
    """Read one record. A record that spans several lines is kept as one equivalent line."""
    line = value.raw
    try:
        record = _parse_record(strict_json.decode(line, _decoder), line)
        if b"\n" in line:
            strict_json.check_strictness(line)
            line = json.dumps(json.loads(line)).encode()
        record.line = value.line
        record.digest = hashlib.sha256(line).hexdigest()
        if compose_line(record) != line:
            strict_json.check_strictness(line)
            record.residue = line
    except strict_json.JsonRefused as refused:
        return value.to_bad_line(refused)
    return record


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
        submitted_at=_parse_timestamp(line.timestamp, raw),
        generation=line.generation,
        is_quality_control=line.is_quality_control_question,
        is_screening=line.is_initial_screening_question,
        total_ms=line.label.total_time,
        finish_reason=line.label.finish_reason,
        turns=[_parse_turn(position, step, raw) for position, step in enumerate(line.label.steps)],
    )


def _parse_timestamp(text: str | None, raw: bytes) -> dt.datetime | None:
    """Parse a timestamp. The published files name no time zone and are read as UTC."""
    if text is None:
        return None
    try:
        time = dt.datetime.fromisoformat(text)
        return time.astimezone(dt.UTC) if time.tzinfo else time.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError) as error:
        hint = "not a time; expected for example 2022-07-13T18:55:54.496450"
        raise _refuse_at(raw, ("timestamp",), hint) from error


def _parse_turn(position: int, step: _Step, raw: bytes) -> TurnRecord:
    completions, human = step.completions, step.human_completion
    if step.chosen_completion is not None and step.chosen_completion >= len(completions or ()):
        raise _refuse_at(
            raw,
            ("label", "steps", position, "chosen_completion"),
            f"{step.chosen_completion} was chosen (counted from 0) of {len(completions or ())} completions",
        )
    return TurnRecord(
        position=position,
        shown=None if completions is None else [JudgmentRecord(c.text, c.rating, c.flagged) for c in completions],
        chosen=step.chosen_completion,
        written=None if human is None else WrittenStep(human.text, human.rating, human.flagged, human.corrected_rating),
    )


def _refuse_at(raw: bytes, path: tuple[str | int, ...], reason: str) -> strict_json.JsonRefused:
    return strict_json.JsonRefused(strict_json.locate_values(raw)[path] + 1, f"{reason}, in {path[-1]}")


# --- writing -------------------------------------------------------------------------------------------------------


def write(rows: Iterable[TraceRecord | ExportRow]) -> Iterator[bytes]:
    """Write a line for each record or export row.

    A compact export row is written from its packed texts; building its record first takes several times as long.
    """
    for row in rows:
        if isinstance(row, TraceRecord):
            yield _write_record(row)
        elif row.facts.machine:
            yield _name_machine(row.facts, _write_record(row.record))
        elif row.facts.is_assisted or row.facts.is_partial_view:
            yield _name_machine(row.facts, _write_record(_complete_own_record(row.facts, row.record)))
        elif row.plain is not None and (line := _compose_compact_row(row.facts, row.plain)) is not None:
            yield line
        elif row.facts.origin == ORIGIN_HERE:
            yield _write_record(_complete_own_record(row.facts, row.record))
        else:
            yield _write_record(row.record)


def _name_machine(facts: RowFacts, line: bytes) -> bytes:
    """Add to a line which machine made it, or when its rater saw the labels of one."""
    more = ", ".join([f'"{name}": {_json(value)}' for name, value in describe_machine(facts).items()])
    return line.rstrip()[:-1] + f", {more}}}\n".encode("ascii")


def _write_record(record: TraceRecord) -> bytes:
    return (record.residue or compose_line(record)) + b"\n"


def compose_line(record: TraceRecord) -> bytes:
    """Compose the line of a record from its fields, without the line feed."""
    submission, problem = record.submissions[0], record.problem
    question = _question_json(
        problem.text,
        None if problem.solution is UNSET else _json(problem.solution),
        None if problem.answer is UNSET else _json(problem.answer),
    )
    if record.kind == PREGENERATED:
        texts = ", ".join([_quote(step.options[0].text) for step in record.steps])
        question += _generated_json(texts, record.answer, record.verifier_score)
    steps = ", ".join([_compose_turn(turn) for turn in submission.turns])
    return _line_json(submission, submission.generation, question, steps).encode("ascii")


def _compose_turn(turn: TurnRecord) -> str:
    completions = human = "null"
    if turn.shown is not None:
        shown = [_completion_json(_quote(each.text), each.rating, each.flagged) for each in turn.shown]
        completions = f"[{', '.join(shown)}]"
    if turn.written is not None:
        human = _human_json(turn.written)
    return _step_json(completions, human, turn.chosen)


# The key order of the format: the next six functions only.


def _line_json(about: SubmissionRecord | RowFacts, generation: int | None, question: str, steps: str) -> str:
    return (
        f'{{"labeler": {_json(about.labeler)}, "timestamp": {_timestamp_json(about.submitted_at)}, '
        f'"generation": {_json(generation)}, "is_quality_control_question": {_json(about.is_quality_control)}, '
        f'"is_initial_screening_question": {_json(about.is_screening)}, "question": {{{question}}}, '
        f'"label": {{"steps": [{steps}], "total_time": {_json(about.total_ms)}, '
        f'"finish_reason": {_json(about.finish_reason)}}}}}'
    )


def _question_json(problem: str, solution: str | None, answer: str | None) -> str:
    """Compose the problem. `solution` and `answer` are JSON, or None if the key is absent."""
    text = f'"problem": {_quote(problem)}'
    if solution is not None:
        text += f', "ground_truth_solution": {solution}'
    if answer is not None:
        text += f', "ground_truth_answer": {answer}'
    return text


def _generated_json(quoted_steps: str, answer: str | None, score: float | None) -> str:
    return (
        f', "pre_generated_steps": [{quoted_steps}], "pre_generated_answer": {_json(answer)}, '
        f'"pre_generated_verifier_score": {_json(score)}'
    )


def _step_json(completions: str, human: str, chosen: int | None) -> str:
    return f'{{"completions": {completions}, "human_completion": {human}, "chosen_completion": {_json(chosen)}}}'


def _completion_json(quoted_text: str, rating: int | None, flagged: bool | None) -> str:
    return f'{{"text": {quoted_text}, "rating": {_json(rating)}, "flagged": {_json(flagged)}}}'


def _human_json(written: WrittenStep) -> str:
    text = (
        f'{{"text": {_quote(written.text)}, "rating": {_json(written.rating)}, "source": "human", '
        f'"flagged": {_json(written.flagged)}'
    )
    if written.corrected_rating is not None:
        text += f', "corrected_rating": {written.corrected_rating}'
    return f"{text}}}"


_WORDS = {None: "null", True: "true", False: "false"}


def _json(value: str | float | None) -> str:
    """Encode a scalar as `json.dumps` does, but faster: this runs for every field of every step."""
    if isinstance(value, str):
        return _quote(value)
    if value is None or value is True or value is False:
        return _WORDS[value]
    return str(value) if isinstance(value, int) else json.dumps(value)


def _timestamp_json(at: dt.datetime | None) -> str:
    """Format a time without a zone and with six decimals, because the public parser accepts nothing else."""
    if at is None:
        return "null"
    utc = at if at.tzinfo is dt.UTC else at.astimezone(dt.UTC)
    return f'"{utc.replace(tzinfo=None).isoformat(timespec="microseconds")}"'


# --- export rows ---------------------------------------------------------------------------------------------------

_QUOTED_SEPARATOR = "\\u001f"  # the separator of compact texts, as JSON writes it
_QUOTED_COMMA = '", "'
_NO_TEXT = '""'


def _compose_compact_row(facts: RowFacts, compact: CompactRow) -> bytes | None:
    """Compose the line of a compact row, or return None if its record is needed after all."""
    if compact.more or facts.residue is not None or facts.kind == LIVE:
        return None
    quoted = _quote(compact.texts)[1:-1]
    texts = quoted.split(_QUOTED_SEPARATOR)
    if len(texts) != compact.n_texts or facts.n_steps > len(texts):
        return None  # a text contains the separator as characters
    own = quoted if facts.n_steps == len(texts) else _QUOTED_SEPARATOR.join(texts[: facts.n_steps])
    is_own = facts.origin == ORIGIN_HERE  # our own labels have null for what is unknown; a file may omit the key
    question = _question_json(
        facts.text,
        _json(facts.reference_solution) if is_own or facts.has_reference_solution else None,
        _json(facts.reference_answer) if is_own or facts.has_reference_answer else None,
    ) + _generated_json(f'"{own.replace(_QUOTED_SEPARATOR, _QUOTED_COMMA)}"', facts.answer, facts.verifier_score)
    ends = [_compose_only_option(cell) for cell in compact.cells.split(";")]
    steps = ", ".join([f'{before}"{text}"{after}' for text, (before, after) in zip(texts, ends)])  # noqa: B905  a rater may stop early
    return (_line_json(facts, facts.exported_generation, question, steps) + "\n").encode("ascii")


@cache
def _compose_only_option(cell: str) -> tuple[str, str]:
    """Return what surrounds the text of a step that showed one option. There are only a few different cells."""
    rated = parse_cell(cell)
    completion = _completion_json(_NO_TEXT, rated.rating, rated.flagged)
    before, _, after = _step_json(f"[{completion}]", "null", rated.chosen).partition(_NO_TEXT)
    return before, after


def _complete_own_record(facts: RowFacts, record: TraceRecord) -> TraceRecord:
    """Fill in a record labeled on our pages as the published files would have it.

    Unknown values are null, not absent; the generation is a number; alternatives and written steps that a rater could
    flag and did not are `"flagged": false`.
    """
    problem, submission = record.problem, record.submissions[0]
    known = ("answer",) if record.kind == LIVE else ("answer", "solution")  # the first phase has no solution
    if record.kind == LIVE:
        problem = structs.replace(problem, solution=UNSET)
    unknown = {name: None for name in known if getattr(problem, name) is UNSET}
    problem = structs.replace(problem, **unknown)
    turns = [_complete_own_turn(turn, is_live=record.kind == LIVE) for turn in submission.turns]
    submission = structs.replace(submission, turns=turns, generation=facts.exported_generation)
    return structs.replace(record, problem=problem, submissions=[submission])


def _complete_own_turn(turn: TurnRecord, *, is_live: bool) -> TurnRecord:
    first = 0 if is_live else 1  # the trace's own step comes first; the published files have null there
    shown = [
        structs.replace(each, flagged=bool(each.flagged)) if place >= first else each
        for place, each in enumerate(turn.shown or ())
    ]
    written = turn.written and structs.replace(turn.written, flagged=bool(turn.written.flagged))
    return structs.replace(turn, shown=turn.shown and shown, written=written)
