"""Record the edits of a client: merge them with what is stored, and write the result."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from django.db import transaction

from accounts.models import User
from events import audit_log
from events.models import Event
from labeling import queue
from labeling.assignments import answer_sheet, merge
from labeling.assignments.answer_sheet import AnswerSheet, EditBatch, IncomingEdit, validate_batch
from labeling.assignments.errors import AssignmentUnknown
from labeling.assignments.merge import LostEdit, MergeResult
from labeling.models import Assignment
from labeling.models.assignment import OPEN_STATES, AssignmentState


class RecordedBatch(NamedTuple):
    """The answer to a batch. All of its edits are in the history now."""

    version_before: int  # other clients' edits up to this version happened before the batch
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
        lock_assignment(assignment_id=assignment_id, rater_id=rater_id)
        recorded = _record(_load_sheet(batch), batch, now)
        if recorded is None:
            raise RuntimeError(f"assignment {assignment_id} changed while it was locked")
        return recorded


def lock_assignment(*, assignment_id: int, rater_id: int, and_trace: bool = False) -> Assignment:
    """Lock the assignment to the end of the transaction. A submit also locks the trace, to count its submissions."""
    rows = Assignment.objects.select_related("project", "rater", "trace").filter(pk=assignment_id, rater_id=rater_id)
    assignment = rows.select_for_update(no_key=True, of=("self", "trace") if and_trace else ("self",)).first()
    if assignment is None:
        raise AssignmentUnknown
    return assignment


def _record_unlocked(batch: EditBatch, now: dt.datetime) -> RecordedBatch | None:
    """Record with two statements and no transaction. Return None if the assignment changed between the two, or if an
    event must be logged as well."""
    sheet = _load_sheet(batch)
    return None if sheet.facts.is_removed or sheet.facts.is_withdrawn else _record(sheet, batch, now)


def _record(sheet: AnswerSheet, batch: EditBatch, now: dt.datetime) -> RecordedBatch | None:
    """Return None, and write nothing, if the assignment has changed since the sheet was read."""
    merged = merge.merge_batch(sheet, batch, now=now)
    version = save_merge(sheet=sheet, merged=merged, client=batch.client, now=now)
    if version is None:
        return None
    log_unexpected_edits(sheet=sheet, merged=merged, now=now)
    facts, ends_at = sheet.facts, sheet.facts.lease_ends_at
    is_open = facts.state in OPEN_STATES
    if version > facts.version:
        ends_at = queue.renewed_lease_end(facts.state, facts.lease_seconds, ends_at, now)
    return RecordedBatch(
        version_before=facts.version,
        version=version,
        state=AssignmentState.OPENED if is_open else AssignmentState(facts.state),
        revision=facts.revision,
        is_late=sheet.is_closed and bool(batch.edits),
        sequences=tuple(edit.sequence for edit in batch.edits),
        lost=merged.lost,
        lease_ends_at=ends_at if is_open else None,
    )


def _load_sheet(batch: EditBatch) -> AnswerSheet:
    return answer_sheet.load_answer_sheet(batch, steps={edit.step for edit in batch.edits if not edit.question})


def save_merge(*, sheet: AnswerSheet, merged: MergeResult, client: str, now: dt.datetime) -> int | None:
    """Write the changes of a batch. Return the new version, or None, and write nothing, if the assignment has changed
    since the sheet was read. The first message for a held trace also opens it."""
    facts = sheet.facts
    if not merged.new_edits and facts.state != AssignmentState.HELD:
        return facts.version
    return queue.update_assignment(
        expected=facts._asdict(),
        new_version=facts.version + 1,
        client=client,
        **list_changes(sheet, merged),
        lease_ends_at=queue.renewed_lease_end(facts.state, facts.lease_seconds, facts.lease_ends_at, now),
        now=now,
    )


def list_changes(sheet: AnswerSheet, merged: MergeResult) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that a batch writes, for `queue.update_assignment`."""
    return {
        "edits": [
            {
                **msgspec.structs.asdict(new_edit.edit),
                "evidence": new_edit.edit.stored_evidence(),
                "citations": new_edit.edit.stored_citations(),
                "seen": new_edit.seen,
                "was_late": sheet.is_closed,
                "was_applied": new_edit.was_applied,
            }
            for new_edit in merged.new_edits
        ],
        "reviews": [{"step_id": sheet.steps[step].id, **review._asdict()} for step, review in merged.reviews.items()],
        "judgments": [
            {
                "step_id": sheet.steps[step].id,
                "option_id": sheet.steps[step].options[option],
                **judgment._asdict(),
            }
            for (step, option), judgment in merged.judgments.items()
        ],
        "answers": [{"question": question, **answer._asdict()} for question, answer in merged.answers.items()],
    }


def log_unexpected_edits(*, sheet: AnswerSheet, merged: MergeResult, now: dt.datetime) -> None:
    """Log once per assignment that edits arrived for a withdrawn trace or from a removed rater. They are kept."""
    if not merged.new_edits:
        return
    facts = sheet.facts
    for what, applies in (
        ("writes.arrived_from_removed_rater", facts.is_removed),
        ("writes.arrived_for_withdrawn_trace", facts.is_withdrawn),
    ):
        if applies and not Event.objects.filter(subject=f"assignment:{facts.assignment}", what=what).exists():
            log_assignment_event(what, facts.assignment, facts.project, None, now)


def log_assignment_event(
    what: str, assignment: int, project: int, by: User | None, now: dt.datetime, **detail: object
) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=project, subject=f"assignment:{assignment}", detail=detail)
