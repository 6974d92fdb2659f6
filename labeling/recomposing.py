"""Turns rows back into the records that they came from, in few queries however many there are."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet
from msgspec import UNSET

from labeling.importing.records import (
    JudgmentRecord,
    OptionRecord,
    ProblemRecord,
    ProvenanceRecord,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    TurnRecord,
    WrittenStep,
)
from labeling.importing.residue import unpack
from labeling.models import Judgment, Option, Submission, Turn


class _Step(NamedTuple):
    kind: str
    is_rateable: bool
    texts: list[str]  # of its options, by place


_Steps = dict[int, dict[int, _Step]]  # by trace and position


class _Row(NamedTuple):
    """A submission with what it stands on."""

    pk: int
    assignment_id: int
    revision: int
    submitted_at: dt.datetime | None
    finish_reason: str | None
    finish_note: str
    total_ms: int | None
    generation: int | None
    is_quality_control: bool | None
    is_screening: bool | None
    residue: bytes | None
    labeler: str | None
    machine: str
    trace_id: int
    kind: str
    n_steps: int
    answer: str | None
    verifier_score: float | None
    is_right: bool | None
    ref: str
    outcome_by: str
    base_model: str | None
    policy: str | None
    scaffold: str | None
    segmenter: str | None
    text: str
    reference_answer: str | None
    reference_solution: str | None
    has_reference_answer: bool
    has_reference_solution: bool


_FIELDS = (
    *("pk", "assignment_id", "revision", "submitted_at", "finish_reason", "finish_note", "total_ms", "generation"),
    *("is_quality_control", "is_screening", "residue", "assignment__rater__labeler", "assignment__rater__machine"),
    *(
        f"assignment__trace__{name}"
        for name in (
            *("id", "kind", "n_steps", "answer", "verifier_score", "is_right", "ref", "outcome_by"),
            *(f"provenance__{field}" for field in ("base_model", "policy", "scaffold", "segmenter")),
            "problem__text",
        )
    ),
    *(
        f"assignment__trace__problem__{name}"
        for name in ("reference_answer", "reference_solution", "has_reference_answer", "has_reference_solution")
    ),
)


def recompose(submission_ids: Sequence[int]) -> Iterator[TraceRecord]:
    """The record of each submission, in the order asked for."""
    rows = {row[0]: _Row(*row) for row in Submission.objects.filter(pk__in=submission_ids).values_list(*_FIELDS)}
    steps = _steps({row.trace_id for row in rows.values()})
    turns = _turns(rows.values(), steps)
    for pk in submission_ids:
        row = rows[pk]
        yield _trace(row, steps[row.trace_id], turns[row.assignment_id, row.revision])


def _steps(trace_ids: set[int]) -> _Steps:
    """Every step of the traces with its options."""
    steps: _Steps = {pk: {} for pk in trace_ids}
    found = Option.objects.filter(step__trace_id__in=trace_ids).order_by("step_id", "position")
    fields = ("step__trace_id", "step__position", "step__kind", "step__is_rateable", "text")
    for trace_id, position, kind, is_rateable, text in found.values_list(*fields):
        of_trace = steps[trace_id]
        if position not in of_trace:
            of_trace[position] = _Step(kind, is_rateable, [])
        of_trace[position].texts.append(text)
    return steps


def _turns(rows: Iterable[_Row], steps: _Steps) -> dict[tuple[int, int], list[TurnRecord]]:
    trace_of = {row.assignment_id: row.trace_id for row in rows}
    found = Turn.objects.filter(assignment_id__in=trace_of, revision__lte=max(row.revision for row in rows))
    judged = _judged(found)
    turns: dict[tuple[int, int], list[TurnRecord]] = defaultdict(list)
    for pk, assignment_id, revision, *fields in found.order_by("step__position").values_list(*_TURN_FIELDS):
        step = steps[trace_of[assignment_id]].get(fields[0])  # none where a rater was shown an empty list
        turns[assignment_id, revision].append(_turn(fields, step.texts if step else [], judged.get(pk, {})))
    return turns


_TURN_FIELDS = (
    *("pk", "assignment_id", "revision", "step__position", "shown", "chosen", "written_text", "written_rating"),
    *("written_flagged", "written_corrected_rating", "comment", "active_ms"),
)


def _judged(turns: QuerySet[Turn]) -> dict[int, dict[int, tuple[Any, ...]]]:
    """What was said of each option, by turn and place."""
    judged: dict[int, dict[int, tuple[Any, ...]]] = defaultdict(dict)
    fields = ("rating", "flagged", "category", "reason", "value", "rollouts", "successes")
    found = Judgment.objects.filter(turn__in=turns).values_list("turn_id", "option__position", *fields)
    for turn_id, place, *said in found:
        judged[turn_id][place] = tuple(said)
    return judged


def _turn(fields: list[Any], options: list[str], judged: dict[int, tuple[Any, ...]]) -> TurnRecord:
    position, shown, chosen, text, rating, flagged, corrected, comment, active_ms = fields
    return TurnRecord(
        position=position,
        shown=None if shown is None else [_shown(int(place), options, judged) for place in shown.split()],
        chosen=chosen,
        written=None if text is None else WrittenStep(text, rating, flagged, corrected),
        comment=comment,
        active_ms=active_ms,
    )


def _shown(place: int, options: list[str], judged: dict[int, tuple[Any, ...]]) -> JudgmentRecord:
    return JudgmentRecord(options[place], *judged.get(place, ()))


def _trace(row: _Row, steps: dict[int, _Step], turns: list[TurnRecord]) -> TraceRecord:
    return TraceRecord(
        problem=ProblemRecord(
            text=row.text,
            answer=row.reference_answer if row.has_reference_answer else UNSET,
            solution=row.reference_solution if row.has_reference_solution else UNSET,
        ),
        steps=[_step(steps.get(position)) for position in range(row.n_steps)],
        kind=row.kind,
        answer=row.answer,
        verifier_score=row.verifier_score,
        is_right=row.is_right,
        ref=row.ref,
        outcome_by=row.outcome_by,
        provenance=_provenance(row),
        submissions=[_submission(row, turns)],
        residue=row.residue and unpack(bytes(row.residue)),
    )


def _step(step: _Step | None) -> StepRecord:
    """A live step may have no options: its rater wrote it without being shown any."""
    if step is None:
        return StepRecord([])
    return StepRecord([OptionRecord(text) for text in step.texts], kind=step.kind, is_rateable=step.is_rateable)


def _provenance(row: _Row) -> ProvenanceRecord | None:
    if row.policy is None:
        return None
    return ProvenanceRecord(
        row.base_model or "", row.policy, scaffold=row.scaffold or "", segmenter=row.segmenter or ""
    )


def _submission(row: _Row, turns: list[TurnRecord]) -> SubmissionRecord:
    return SubmissionRecord(
        turns=turns,
        labeler=row.labeler,
        machine=row.machine,
        submitted_at=row.submitted_at,
        generation=row.generation,
        is_quality_control=row.is_quality_control,
        is_screening=row.is_screening,
        total_ms=row.total_ms,
        finish_reason=row.finish_reason,
        finish_note=row.finish_note,
    )
