"""How long a trace stays with a rater, and how it goes back. Locks in one order: assignments, traces, entries."""

import datetime as dt
from collections.abc import Sequence

from django.db import transaction
from django.db.models import Case, Q, When

from accounts.models import User
from events import audit_log
from labeling.models import Assignment
from labeling.models.assignment import AssignmentPurpose, AssignmentQuerySet, AssignmentState
from labeling.queue import eligibility, slots
from labeling.queue.persist import AsRead, persist

# Everybody gets these, and only from his own hands do they come back: nobody waits for them, so they do not lapse.
NEVER_LAPSES = Q(state=AssignmentState.OPENED, purpose__in=[AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING])
_NOTIFY_NONE = Q(pk__in=[])
_NOTIFY_OPENED = Q(state=AssignmentState.OPENED)
# A lease that ends where nothing was written is nobody's loss, and no news.
_NOTIFY_EDITED = _NOTIFY_OPENED & Q(version__gt=0)
# What one transaction ends at most: it holds locks on the entries that raters claim from.
_CHUNK = 100


def open_assignment(*, assignment_id: int, rater_id: int, now: dt.datetime) -> Assignment:
    """Open a trace that the rater holds: the guideline and what the rater can see are fixed from here. Opening it again
    changes nothing."""
    assignments = Assignment.objects.select_related("project", "rater", "lane")
    assignment = assignments.get(pk=assignment_id, rater_id=rater_id)
    eligibility.check_eligibility(assignment.rater, assignment.project)
    if assignment.state == AssignmentState.HELD:
        as_read = AsRead(
            assignment.pk,
            assignment.version,
            assignment.state,
            assignment.revision,
            assignment.submitted_revision,
            is_reopened=assignment.reopened_at is not None,
        )
        ends_at = now + dt.timedelta(seconds=assignment.project.lease_seconds)
        # None: it may have lapsed since it was read. Either way the row is read again.
        persist(as_read=as_read, new_version=assignment.version, lease_ends_at=ends_at, now=now)
        return open_assignment(assignment_id=assignment_id, rater_id=rater_id, now=now)
    if assignment.state not in (AssignmentState.OPENED, AssignmentState.SUBMITTED):
        raise eligibility.lease_lost_error()
    return assignment


def release_assignment(*, assignment_id: int, now: dt.datetime, reason: str, by: User | None) -> bool:
    """Give a trace back to the queue. False when it is not in anybody's hands any more."""
    with transaction.atomic():
        assignments = _end_assignments(
            Assignment.objects.filter(pk=assignment_id), AssignmentState.RELEASED, now, reason
        )
        _log_releases(assignments, now, reason, by)
    return bool(assignments)


def reclaim_assignment(*, assignment_id: int, now: dt.datetime, by: User) -> bool:
    """Somebody takes a trace out of another's hands. Who is in the middle of it is told, and may finish it. False when
    it is not in anybody's hands any more."""
    reason = "taken back by a lead"
    with transaction.atomic():
        asked_for = Assignment.objects.filter(pk=assignment_id)
        assignments = _end_assignments(asked_for, AssignmentState.RELEASED, now, reason, is_news=_NOTIFY_OPENED)
        _log_releases(assignments, now, reason, by)
    return bool(assignments)


def acknowledge_reclaim(*, assignment_id: int, rater_id: int, now: dt.datetime, by: User) -> bool:
    """The rater has read that a trace went back. False where there was nothing to read."""
    told = Assignment.objects.filter(pk=assignment_id, rater_id=rater_id, is_end_news=True)
    with transaction.atomic():
        project = told.values_list("project", flat=True).first()
        is_new = bool(told.update(is_end_news=False))
        if is_new:
            audit_log.log_event(
                what="assignment.end_known", by=by, now=now, project=project, subject=f"assignment:{assignment_id}"
            )
    return is_new


def release_held(
    *,
    now: dt.datetime,
    reason: str,
    by: User | None,
    project_id: int | None = None,
    rater_id: int | None = None,
    trace_ids: Sequence[int] | None = None,
) -> int:
    """Give back what was fetched ahead and never opened: of a project, of a rater, or of some traces."""
    held = Assignment.objects.held()
    if project_id is None and rater_id is None and trace_ids is None:
        raise ValueError("Say whose held assignments go back: a project's, a rater's, or those of some traces.")
    held = held if project_id is None else held.filter(project_id=project_id)
    held = held if rater_id is None else held.filter(rater_id=rater_id)
    held = held if trace_ids is None else held.filter(trace_id__in=trace_ids)
    released = 0
    while True:
        with transaction.atomic():
            assignments = _end_assignments(held, AssignmentState.RELEASED, now, reason)
            _log_releases(assignments, now, reason, by)
        released += len(assignments)
        if len(assignments) < _CHUNK:
            return released


def lapse_expired_leases(*, now: dt.datetime, project_id: int | None = None, limit: int = 500) -> int:
    """Take back what nobody has worked on until its lease ended. What another process is just ending is left to it."""
    due = Assignment.objects.filter(lease_ends_at__lte=now).exclude(NEVER_LAPSES)
    due = due if project_id is None else due.filter(project_id=project_id)
    lapsed = 0
    # Looked up first: nearly always nothing is due, and a look needs no transaction.
    while lapsed < limit and due.open().exists():
        with transaction.atomic():
            most = min(_CHUNK, limit - lapsed)
            chunk = _end_assignments(
                due, AssignmentState.LAPSED, now, "", at_most=most, skips=True, is_news=_NOTIFY_EDITED
            )
        lapsed += len(chunk)
        if not chunk:
            break
    return lapsed


def _end_assignments(
    assignments: AssignmentQuerySet,
    state: AssignmentState,
    now: dt.datetime,
    reason: str,
    *,
    at_most: int = _CHUNK,
    skips: bool = False,
    is_news: Q = _NOTIFY_NONE,
) -> list[Assignment]:
    """End those that are open, and give their slots back. Those of `is_news` are told to their raters."""
    still_open = assignments.open().order_by("pk")
    rows = list(still_open.select_for_update(skip_locked=skips, no_key=True, of=("self",))[:at_most])
    Assignment.objects.filter(pk__in=[row.pk for row in rows]).update(
        state=state,
        holds_slot=False,
        ended_at=now,
        ended_reason=reason[:300],
        is_end_news=Case(When(is_news, then=True), default=False),
    )
    slots.return_slots(assignments=rows, now=now)
    return rows


def _log_releases(assignments: Sequence[Assignment], now: dt.datetime, reason: str, by: User | None) -> None:
    audit_log.log_events(
        (
            audit_log.EventEntry("assignment.released", row.project_id, f"assignment:{row.pk}", {"reason": reason})
            for row in assignments
        ),
        by=by,
        now=now,
    )
