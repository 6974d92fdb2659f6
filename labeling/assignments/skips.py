"""Gives a trace back that the rater does not want to judge."""

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

# How a skipped assignment is told from one that was given back for another reason.
SKIP_PREFIX = "skipped: "


def skip_trace(*, assignment_id: int, rater_id: int, reason: str, now: dt.datetime, by: User | None) -> None:
    """Give the trace back with a reason; what was rated is kept. Raises what `errors` says of it."""
    why = SKIP_PREFIX + validate_reason(reason)
    with transaction.atomic():
        # The rater's row: two skips of one rater count one after the other.
        rater = Rater.objects.select_for_update(no_key=True).filter(pk=rater_id).first()
        assignment = Assignment.objects.select_related("project").filter(pk=assignment_id, rater_id=rater_id).first()
        if rater is None or assignment is None:
            raise AssignmentUnknown
        if assignment.state not in OPEN_STATES:
            raise AssignmentNotOpen
        if assignment.purpose in (AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING):
            raise SkipNotAllowed
        _check_skip_limit(assignment, now)
        if not queue.release_assignment(assignment_id=assignment_id, now=now, reason=why, by=by):
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
    """How many traces the rater has skipped since midnight (UTC)."""
    midnight = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    given_back = Assignment.objects.filter(rater_id=rater_id, state=AssignmentState.RELEASED, ended_at__gte=midnight)
    return given_back.filter(ended_reason__startswith=SKIP_PREFIX).count()


def _check_skip_limit(assignment: Assignment, now: dt.datetime) -> None:
    limit = assignment.project.skip_limit_per_day
    if count_skips_today(rater_id=assignment.rater_id, now=now) >= limit:
        raise SkipLimitReached(limit)
