"""Records what clients send, as it is made."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction

import rawsql
from labeling.assignments import answer_sheet, event_log, merge, persist
from labeling.assignments.answer_sheet import AnswerSheet
from labeling.assignments.edit_batch import EditBatch, IncomingEdit, validate_batch
from labeling.assignments.errors import AssignmentUnknown
from labeling.assignments.merge import LostEdit, MergeResult
from labeling.models.assignment import OPEN_STATES, AssignmentState


class RecordedBatch(NamedTuple):
    """What a batch came to. Every write of it is in the history now."""

    version: int
    state: AssignmentState
    revision: int
    is_late: bool  # the trace is submitted: what is new was kept, not applied
    sequences: tuple[int, ...]  # all of the batch: the client need not send them again
    lost: tuple[LostEdit, ...]  # those that do not stand, with what does
    lease_ends_at: dt.datetime | None  # None where it is not in the rater's hands


def record_edits(
    *, assignment_id: int, rater_id: int, client: str, writes: Sequence[IncomingEdit], now: dt.datetime
) -> RecordedBatch:
    """Keep a batch of one client. Sent again it changes nothing and is answered alike. Raises WriteRefused, and keeps
    nothing, when a write is about a place that the trace does not have."""
    batch = validate_batch(assignment_id, rater_id, client, writes)
    recorded = _record_unlocked(batch, now)
    if recorded is not None:
        return recorded
    with transaction.atomic():
        lock_assignment(batch=batch, now=now)
        return _record_locked(batch, now)


def lock_assignment(*, batch: EditBatch, now: dt.datetime, and_trace: bool = False) -> None:
    """Lock the assignment to the end of the transaction. A submit also locks the trace: it counts what others have
    submitted."""
    held = _LOCK_WITH_TRACE if and_trace else _LOCK
    if not rawsql.fetch_rows(held, {"assignment": batch.assignment_id, "rater": batch.rater_id}):
        raise AssignmentUnknown


def _record_unlocked(batch: EditBatch, now: dt.datetime) -> RecordedBatch | None:
    """Two statements without a transaction of their own. None where that is not enough: the assignment moved between
    the two, or there is something to do besides."""
    found = _load_sheet(batch)
    if found.facts.is_removed or found.facts.is_withdrawn:
        return None
    met = merge.merge_batch(found, batch, now=now)
    version = persist.persist_merge(standing=found, meeting=met, client=batch.client, now=now)
    return None if version is None else _recorded_batch(found, met, batch, version, now)


def _record_locked(batch: EditBatch, now: dt.datetime) -> RecordedBatch:
    found = _load_sheet(batch)
    met = merge.merge_batch(found, batch, now=now)
    version = persist.persist_merge(standing=found, meeting=met, client=batch.client, now=now)
    if version is None:
        raise RuntimeError(f"assignment {batch.assignment_id} moved while it was locked")
    event_log.log_late_edits(standing=found, meeting=met, now=now)
    return _recorded_batch(found, met, batch, version, now)


def _load_sheet(batch: EditBatch) -> AnswerSheet:
    return answer_sheet.load_answer_sheet(batch, steps={write.step for write in batch.writes})


def _recorded_batch(
    found: AnswerSheet, met: MergeResult, batch: EditBatch, version: int, now: dt.datetime
) -> RecordedBatch:
    is_in_hand = found.facts.state in OPEN_STATES
    renewed = version > found.facts.version
    ends_at = persist.renewed_lease_end(found, now) if renewed else found.facts.lease_ends_at
    return RecordedBatch(
        version=version,
        state=AssignmentState.OPENED if is_in_hand else AssignmentState(found.facts.state),
        revision=found.facts.revision,
        is_late=found.is_closed and bool(batch.writes),
        sequences=tuple(write.sequence for write in batch.writes),
        lost=met.lost,
        lease_ends_at=ends_at if is_in_hand else None,
    )


_LOCK_WITH_TRACE = """
SELECT 1 FROM labeling_assignment a JOIN labeling_trace t ON t.id = a.trace_id
WHERE a.id = %(assignment)s AND a.rater_id = %(rater)s FOR NO KEY UPDATE OF a, t"""
_LOCK = "SELECT 1 FROM labeling_assignment WHERE id = %(assignment)s AND rater_id = %(rater)s FOR NO KEY UPDATE"
