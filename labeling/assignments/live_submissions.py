"""Store what a rater did while steps were generated as a live trace with its submission, as PRM800K's first phase has
it. The trace has all options that were shown, so nobody else can label it."""

import datetime as dt
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from accounts.models import User
from jobs import wakeups
from labeling.assignments import edits
from labeling.models import (
    Assignment,
    Guideline,
    Judgment,
    Option,
    Problem,
    ProjectBudget,
    Provenance,
    Rater,
    Step,
    StepReview,
    Submission,
    Trace,
)
from labeling.models.assignment import AssignmentState, FinishReason
from labeling.models.project import Protocol
from labeling.models.trace import TraceKind
from labeling.projects import budgets
from labeling.quality import settlements

_EVENT_OF_ENDING = {FinishReason.GIVE_UP: "trace.given_up", FinishReason.BAD_PROBLEM: "trace.not_settled"}


@dataclass(frozen=True)
class RatedOption:
    """An option with its rating, by its index in the answer of the model."""

    index: int
    text: str
    rating: int | None = None
    is_flagged: bool = False


@dataclass(frozen=True)
class LiveStepRecord:
    """One step. `shown` has the indexes of the options in the order shown, or is None if there were no options. The
    step is the option with the index `chosen`, the text `written`, or not decided."""

    options: Sequence[RatedOption]
    shown: Sequence[int] | None
    chosen: int | None = None
    written: str | None = None
    active_ms: int = 0


@dataclass(frozen=True)
class LiveWork:
    """What a rater did on one problem."""

    key: str  # the same for the same work, and unique in the project
    problem: Problem
    steps: Sequence[LiveStepRecord]
    finish_reason: FinishReason
    finish_note: str
    started_at: dt.datetime
    separator: str  # between two steps
    answer: str | None = None
    guideline: Guideline | None = None
    saw_reference_answer: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def save_live_submission(*, rater: Rater, work: LiveWork, by: User | None, now: dt.datetime) -> Submission:
    """Create the trace, the assignment and its submission."""
    with transaction.atomic():
        trace = _save_trace(rater, work, now)
        assignment = Assignment.objects.create(
            project_id=rater.project_id,
            rater=rater,
            trace=trace,
            state=AssignmentState.SUBMITTED,
            held_at=work.started_at,
            first_held_at=work.started_at,
            opened_at=work.started_at,
            submitted_at=now,
            finish_reason=work.finish_reason,
            guideline=work.guideline,
            saw_reference_answer=work.saw_reference_answer,
            saw_final_verdict=False,
            submitted_revision=1,
            due_at=now,
        )
        elapsed = max(0, int((now - work.started_at).total_seconds() * 1000))
        submission = Submission.objects.create(
            project_id=rater.project_id,
            assignment=assignment,
            submitted_at=now,
            finish_reason=work.finish_reason,
            finish_note=work.finish_note,
            total_ms=min(elapsed, sum(step.active_ms for step in work.steps)),
            is_quality_control=False,
            is_screening=False,
            protocol=Protocol.LIVE,
        )
        _save_steps(trace, assignment, work.steps, work.separator)
        what = _EVENT_OF_ENDING.get(work.finish_reason, "submission.made")
        edits.log_assignment_event(
            what, assignment.pk, rater.project_id, by, now, revision=1, finish_reason=work.finish_reason.value
        )
        wakeups.request_task(settlements.REFRESH_TASK)
        if ProjectBudget.objects.filter(pk=rater.project_id).exists():
            budgets.add_pay(project_id=rater.project_id, total_ms=submission.total_ms or 0)
    return submission


def _save_trace(rater: Rater, work: LiveWork, now: dt.datetime) -> Trace:
    values = dict(work.provenance)
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    provenance, _ = Provenance.objects.get_or_create(project_id=rater.project_id, digest=digest, defaults=values)
    return Trace.objects.create(
        project_id=rater.project_id,
        problem=work.problem,
        digest=hashlib.sha256(f"live {work.key}".encode()).hexdigest(),
        kind=TraceKind.LIVE,
        n_steps=len(work.steps),
        answer=work.answer,
        provenance=provenance,
        metadata=dict(work.metadata),
        added_at=now,
    )


def _save_steps(trace: Trace, assignment: Assignment, records: Sequence[LiveStepRecord], separator: str) -> None:
    steps = Step.objects.bulk_create(
        Step(trace=trace, position=position, separator=separator if position else "")
        for position in range(len(records))
    )
    # The positions of options are those of the answer without gaps.
    places = [{option.index: place for place, option in enumerate(record.options)} for record in records]
    rows = [
        Option(step=step, position=place, text=option.text)
        for step, record in zip(steps, records, strict=True)
        for place, option in enumerate(record.options)
    ]
    options = {(option.step_id, option.position): option for option in Option.objects.bulk_create(rows)}
    reviews = StepReview.objects.bulk_create(
        _make_review(assignment, step, record, place_of)
        for step, record, place_of in zip(steps, records, places, strict=True)
    )
    Judgment.objects.bulk_create(
        Judgment(turn=review, option=options[step.pk, place], rating=option.rating, flagged=option.is_flagged)
        for review, step, record in zip(reviews, steps, records, strict=True)
        for place, option in enumerate(record.options)
        if _is_rated(record, option)
    )


def _make_review(assignment: Assignment, step: Step, record: LiveStepRecord, place_of: Mapping[int, int]) -> StepReview:
    shown = None if record.shown is None else [place_of[index] for index in record.shown]
    return StepReview(
        assignment=assignment,
        step=step,
        shown=None if shown is None else " ".join(map(str, shown)),
        chosen=None if record.chosen is None or shown is None else shown.index(place_of[record.chosen]),
        written_text=record.written,
        active_ms=record.active_ms,
    )


def _is_rated(record: LiveStepRecord, option: RatedOption) -> bool:
    is_shown = record.shown is not None and option.index in record.shown
    return is_shown and (option.rating is not None or option.is_flagged)
