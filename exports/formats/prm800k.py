"""PRM800K, phase 1 and 2: JSON Lines, byte for byte as they came where they came from such a file.

Shape and reading stand together in the reader, which composes what it reads. What is plain is composed here from pieces
of text, in a few operations a line: the same bytes, in a third of the time.
"""

import datetime as dt
import json
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring_ascii as quoted

from msgspec import UNSET, structs

from exports.formats.columns import Columns
from labeling.importing.readers import prm800k
from labeling.importing.records import LIVE, TraceRecord, TurnRecord
from labeling.readings import HERE, Facts, Plain, Reading, cell

_COMPLETION = {"text": "string", "rating": "int64", "flagged": "bool"}
_HUMAN = {**_COMPLETION, "source": "string", "corrected_rating": "int64"}
_STEP = {"completions": [_COMPLETION], "human_completion": _HUMAN, "chosen_completion": "int64"}
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
    "label": {"steps": [_STEP], "total_time": "int64", "finish_reason": "string"},
}
_BETWEEN = "\\u001f"  # the separator of plain texts, as JSON has it
_WORDS = {None: "null", True: "true", False: "false"}
# What follows the text of a turn's only option, by its cell.
_tails: dict[str, str] = {}


def write(records: Iterable[TraceRecord]) -> Iterator[bytes]:
    """A line for each record."""
    for record in records:
        yield (record.residue or prm800k.compose(record)) + b"\n"


def lines(readings: Iterable[Reading]) -> Iterator[bytes]:
    """The same of what a manifest reads."""
    for reading in readings:
        line = None if reading.plain is None else _plain(reading.facts, reading.plain)
        if line is None:
            record = reading.record if reading.facts.origin != HERE else _made_here(reading.facts, reading.record)
            yield (record.residue or prm800k.compose(record)) + b"\n"
        else:
            yield line.encode("ascii")


def _plain(facts: Facts, plain: Plain) -> str | None:
    """None: not as plain as it looked, or none of the usual kind."""
    if plain.more or facts.residue is not None or facts.kind == LIVE:
        return None
    texts = quoted(plain.texts)
    options = texts[1:-1].split(_BETWEEN)
    if len(options) != plain.n_texts or facts.n_steps > len(options):
        return None
    tails = [_tails.get(each) or _tail(each) for each in plain.cells.split(";")]
    steps = ", ".join([f'{{"completions": [{{"text": "{text}"{tail}' for text, tail in zip(options, tails)])  # noqa: B905  a rater may stop early
    own = texts if facts.n_steps == len(options) else f'"{_BETWEEN.join(options[: facts.n_steps])}"'
    return (
        f'{{"labeler": {_text(facts.labeler)}, "timestamp": {_timestamp(facts.submitted_at)}, '
        f'"generation": {_number(facts.told_generation)}, '
        f'"is_quality_control_question": {_WORDS[facts.is_quality_control]}, '
        f'"is_initial_screening_question": {_WORDS[facts.is_screening]}, '
        f'"question": {{"problem": {quoted(facts.text)}{_reference(facts)}, '
        f'"pre_generated_steps": [{own.replace(_BETWEEN, _COMMA)}], '
        f'"pre_generated_answer": {_text(facts.answer)}, '
        f'"pre_generated_verifier_score": {_score(facts.verifier_score)}}}, '
        f'"label": {{"steps": [{steps}], "total_time": {_number(facts.total_ms)}, '
        f'"finish_reason": {_text(facts.finish_reason)}}}}}\n'
    )


_COMMA = '", "'


def _tail(text: str) -> str:
    said = cell(text)
    tail = (
        f', "rating": {_number(said.rating)}, "flagged": {_WORDS[said.flagged]}}}], '
        f'"human_completion": null, "chosen_completion": {_number(said.chosen)}}}'
    )
    return _tails.setdefault(text, tail)


def _made_here(facts: Facts, record: TraceRecord) -> TraceRecord:
    """Our own labels as such files have them: what is not known is null and not absent, a round is a number, and where
    a rater could flag and did not, on alternatives and on a step of the rater's own, that is told."""
    problem, submission = record.problem, record.submissions[0]
    if record.kind != LIVE:
        known = {name: None for name in ("answer", "solution") if getattr(problem, name) is UNSET}
        problem = structs.replace(problem, **known)
    turns = [_turn_made_here(turn, is_live=record.kind == LIVE) for turn in submission.turns]
    said = structs.replace(submission, turns=turns, generation=facts.told_generation)
    return structs.replace(record, problem=problem, submissions=[said])


def _turn_made_here(turn: TurnRecord, *, is_live: bool) -> TurnRecord:
    first = 0 if is_live else 1  # the trace's own step stands first, and is null in such files
    shown = [
        structs.replace(each, flagged=bool(each.flagged)) if place >= first else each
        for place, each in enumerate(turn.shown or ())
    ]
    own = turn.written and structs.replace(turn.written, flagged=bool(turn.written.flagged))
    return structs.replace(turn, shown=turn.shown and shown, written=own)


def _reference(facts: Facts) -> str:
    if facts.origin == HERE:
        facts = facts._replace(has_reference_solution=True, has_reference_answer=True)
    solution = f', "ground_truth_solution": {_text(facts.reference_solution)}' if facts.has_reference_solution else ""
    answer = f', "ground_truth_answer": {_text(facts.reference_answer)}' if facts.has_reference_answer else ""
    return solution + answer


def _text(value: str | None) -> str:
    return "null" if value is None else quoted(value)


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)


def _score(value: float | None) -> str:
    return "null" if value is None else json.dumps(value)


def _timestamp(at: dt.datetime | None) -> str:
    """Without a zone and with six digits: a strict public parser dies on anything else."""
    if at is None:
        return "null"
    utc = at if at.tzinfo is dt.UTC else at.astimezone(dt.UTC)
    return f'"{utc.replace(tzinfo=None).isoformat(timespec="microseconds")}"'
