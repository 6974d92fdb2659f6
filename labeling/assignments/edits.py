"""Record the edits of a client: merge them with what is stored, and write the result."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import transaction

import rawsql
from labeling import queue
from labeling.assignments import answer_sheet, event_log, merge
from labeling.assignments.answer_sheet import AnswerSheet, JudgmentRow, StepReviewRow
from labeling.assignments.edit_batch import EditBatch, IncomingEdit, validate_batch
from labeling.assignments.errors import AssignmentUnknown
from labeling.assignments.merge import LostEdit, MergeResult, NewEdit
from labeling.models.assignment import OPEN_STATES, AssignmentState


class RecordedBatch(NamedTuple):
    """The answer to a batch. All of its edits are in the history now."""

    version: int
    state: AssignmentState
    revision: int
    is_late: bool  # the trace is submitted: new edits were stored, but not applied
    sequences: tuple[int, ...]  # all edits of the batch: the client need not send them again
    lost: tuple[LostEdit, ...]
    lease_ends_at: dt.datetime | None  # None if the assignment is not open


def record_edits(
    *, assignment_id: int, rater_id: int, client: str, writes: Sequence[IncomingEdit], now: dt.datetime
) -> RecordedBatch:
    """Record a batch of one client. A repeated batch changes nothing and gets the same answer.

    Raises EditRefused, and records nothing, if an edit names a step or option that the trace does not have.
    """
    batch = validate_batch(assignment_id, rater_id, client, writes)
    recorded = _record_unlocked(batch, now)
    if recorded is not None:
        return recorded
    with transaction.atomic():
        lock_assignment(batch=batch, now=now)
        return _record_locked(batch, now)


def lock_assignment(*, batch: EditBatch, now: dt.datetime, and_trace: bool = False) -> None:
    """Lock the assignment to the end of the transaction. A submit also locks the trace, to count its submissions."""
    sql = _LOCK_WITH_TRACE if and_trace else _LOCK
    if not rawsql.fetch_rows(sql, {"assignment": batch.assignment_id, "rater": batch.rater_id}):
        raise AssignmentUnknown


_LOCK_WITH_TRACE = """
SELECT 1 FROM labeling_assignment a JOIN labeling_trace t ON t.id = a.trace_id
WHERE a.id = %(assignment)s AND a.rater_id = %(rater)s FOR NO KEY UPDATE OF a, t"""
_LOCK = "SELECT 1 FROM labeling_assignment WHERE id = %(assignment)s AND rater_id = %(rater)s FOR NO KEY UPDATE"


def _record_unlocked(batch: EditBatch, now: dt.datetime) -> RecordedBatch | None:
    """Record with two statements and no transaction. Return None if the assignment changed between the two, or if an
    event must be logged as well."""
    sheet = _load_sheet(batch)
    if sheet.facts.is_removed or sheet.facts.is_withdrawn:
        return None
    merged = merge.merge_batch(sheet, batch, now=now)
    version = save_merge(sheet=sheet, merged=merged, client=batch.client, now=now)
    return None if version is None else _recorded_batch(sheet, merged, batch, version, now)


def _record_locked(batch: EditBatch, now: dt.datetime) -> RecordedBatch:
    sheet = _load_sheet(batch)
    merged = merge.merge_batch(sheet, batch, now=now)
    version = save_merge(sheet=sheet, merged=merged, client=batch.client, now=now)
    if version is None:
        raise RuntimeError(f"assignment {batch.assignment_id} changed while it was locked")
    event_log.log_unexpected_edits(sheet=sheet, merged=merged, now=now)
    return _recorded_batch(sheet, merged, batch, version, now)


def _load_sheet(batch: EditBatch) -> AnswerSheet:
    return answer_sheet.load_answer_sheet(batch, steps={edit.step for edit in batch.edits})


def _recorded_batch(
    sheet: AnswerSheet, merged: MergeResult, batch: EditBatch, version: int, now: dt.datetime
) -> RecordedBatch:
    is_open = sheet.facts.state in OPEN_STATES
    ends_at = _renewed_lease_end(sheet, now) if version > sheet.facts.version else sheet.facts.lease_ends_at
    return RecordedBatch(
        version=version,
        state=AssignmentState.OPENED if is_open else AssignmentState(sheet.facts.state),
        revision=sheet.facts.revision,
        is_late=sheet.is_closed and bool(batch.edits),
        sequences=tuple(edit.sequence for edit in batch.edits),
        lost=merged.lost,
        lease_ends_at=ends_at if is_open else None,
    )


def save_merge(*, sheet: AnswerSheet, merged: MergeResult, client: str, now: dt.datetime) -> int | None:
    """Write the changes of a batch. Return the new version, or None, and write nothing, if the assignment has changed
    since the sheet was read. The first message for a held trace also opens it."""
    facts = sheet.facts
    if not merged.new_edits and facts.state != AssignmentState.HELD:
        return facts.version
    return queue.update_assignment(
        expected=queue.ExpectedAssignment(
            facts.assignment, facts.version, facts.state, facts.revision, facts.submitted_revision, facts.is_reopened
        ),
        new_version=facts.version + 1,
        client=client,
        edits=[_edit_columns(new_edit, sheet) for new_edit in merged.new_edits],
        reviews=[_review_columns(sheet, *item) for item in merged.reviews.items()],
        judgments=[_judgment_columns(sheet, *item) for item in merged.judgments.items()],
        lease_ends_at=_renewed_lease_end(sheet, now),
        now=now,
    )


def _renewed_lease_end(sheet: AnswerSheet, now: dt.datetime) -> dt.datetime | None:
    facts = sheet.facts
    return queue.renewed_lease_end(
        state=facts.state, lease_seconds=facts.lease_seconds, lease_ends_at=facts.lease_ends_at, now=now
    )


def _edit_columns(new_edit: NewEdit, sheet: AnswerSheet) -> dict[str, Any]:
    edit = new_edit.edit
    return {
        "sequence": edit.sequence,
        "seen": new_edit.seen,
        "kind": edit.kind,
        "step": edit.step,
        "option": edit.option,
        "rating": edit.rating,
        "flagged": edit.flagged,
        "category": edit.category,
        "text": edit.text,
        "active_ms": edit.active_ms,
        "made_at": edit.made_at,
        "was_late": sheet.is_closed,
        "was_applied": new_edit.was_applied,
    }


def _review_columns(sheet: AnswerSheet, position: int, review: StepReviewRow) -> dict[str, Any]:
    return {"step_id": sheet.steps[position].id, **review._asdict()}


def _judgment_columns(sheet: AnswerSheet, place: tuple[int, int], judgment: JudgmentRow) -> dict[str, Any]:
    step = sheet.steps[place[0]]
    return {"step_id": step.id, "option_id": step.options[place[1]], **judgment._asdict()}
