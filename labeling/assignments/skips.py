"""Skip a trace: return it to the queue with a reason, up to the daily limit of the project."""

import datetime as dt

from django.db import transaction

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.assignments import event_log
from labeling.assignments.edit_batch import validate_reason
from labeling.assignments.errors import AssignmentNotOpen, AssignmentUnknown, SkipLimitReached, SkipNotAllowed
from labeling.models import Assignment, Rater
from labeling.models.assignment import OPEN_STATES, AssignmentPurpose, AssignmentState

# Marks the skipped ones among all released assignments.
SKIP_PREFIX = "skipped: "


def skip_trace(*, assignment_id: int, rater_id: int, reason: str, now: dt.datetime, by: User | None) -> None:
    """Release the assignment; its ratings are kept. Raises an AssignmentError."""
    ended_reason = SKIP_PREFIX + validate_reason(reason)
    with transaction.atomic():
        # Locks the rater, so that concurrent skips count one after the other.
        rater = Rater.objects.select_for_update(no_key=True).filter(pk=rater_id).first()
        assignment = Assignment.objects.select_related("project").filter(pk=assignment_id, rater_id=rater_id).first()
        if rater is None or assignment is None:
            raise AssignmentUnknown
        if assignment.state not in OPEN_STATES:
            raise AssignmentNotOpen
        if assignment.purpose in (AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING):
            raise SkipNotAllowed
        _check_skip_limit(assignment, now)
        if not queue.release_assignment(assignment_id=assignment_id, now=now, reason=ended_reason, by=by):
            raise AssignmentNotOpen
        audit_log.log_event(
            what="assignment.skipped",
            by=by,
            now=now,
            project=assignment.project_id,
            subject=event_log.assignment_subject(assignment_id),
            detail={"reason": reason},
        )


def count_skips_today(*, rater_id: int, now: dt.datetime) -> int:
    """Count the traces that the rater has skipped since midnight (UTC)."""
    midnight = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    released = Assignment.objects.filter(rater_id=rater_id, state=AssignmentState.RELEASED, ended_at__gte=midnight)
    return released.filter(ended_reason__startswith=SKIP_PREFIX).count()


def _check_skip_limit(assignment: Assignment, now: dt.datetime) -> None:
    limit = assignment.project.skip_limit_per_day
    if count_skips_today(rater_id=assignment.rater_id, now=now) >= limit:
        raise SkipLimitReached(limit)
