"""How long a rater keeps a trace, and how a trace returns to the queue.

- A claimed trace is *held* for HOLD_DURATION, until the rater opens it.
- An opened trace has a lease of the project's `lease_seconds`. Every message of the rater renews it, at most once per
  RENEWAL_INTERVAL. Traces of training and screening never lapse.
- A lease that ends lapses (`lapse_expired_leases`). A lead can reclaim a trace (`reclaim_assignment`), a rater can
  release it, and held traces are released when the project or the rater changes (`release_held`).

Locks are always taken in one order: assignments, traces, queue entries.
"""

import datetime as dt
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.db import transaction
from django.db.models import Case, Q, When

import rawsql
from accounts.models import User
from events import audit_log
from labeling.models import Assignment
from labeling.models.assignment import AssignmentPurpose, AssignmentQuerySet, AssignmentState
from labeling.queue import eligibility, slots
from labeling.queue.eligibility import AssignmentLeaseLost

_SECTIONS = rawsql.sections(rawsql.load_sql(__file__, "update_assignment.sql"))
CHANGES_SQL = _SECTIONS["changes"]
_UPDATE = _SECTIONS["expected"] + CHANGES_SQL + _SECTIONS["update"]
_UPDATE_WITH_ANSWERS = _SECTIONS["expected"] + _SECTIONS["answers"] + CHANGES_SQL + _SECTIONS["update"]
OPEN_HELD_SQL = rawsql.load_sql(__file__, "open_held.sql")
_Rows = Sequence[Mapping[str, Any]]

# A prefetched trace is not available to others, so the hold is short.
HOLD_DURATION = dt.timedelta(minutes=5)
RENEWAL_INTERVAL = dt.timedelta(minutes=1)
# Every rater gets these traces, and no one else waits for them.
NEVER_LAPSES = Q(state=AssignmentState.OPENED, purpose__in=[AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING])

_NOTIFY_NONE = Q(pk__in=[])
_NOTIFY_OPENED = Q(state=AssignmentState.OPENED)
# A lapsed trace without any rating is not worth a notice.
_NOTIFY_EDITED = _NOTIFY_OPENED & Q(version__gt=0)
# Assignments per transaction: it locks entries that raters claim from.
_CHUNK = 100


def renewed_lease_end(
    state: str, lease_seconds: int, lease_ends_at: dt.datetime | None, now: dt.datetime
) -> dt.datetime | None:
    """Return when the lease ends after activity of the rater, or None if the assignment is not open.

    A lease that was renewed less than RENEWAL_INTERVAL ago stays as it is: an index contains its end, and PostgreSQL
    updates a row without touching any index if no indexed column changes.
    """
    if state not in (AssignmentState.HELD, AssignmentState.OPENED):
        return None
    lease, recent = _lease_spans(lease_seconds)
    is_recent = lease_ends_at is not None and lease_ends_at > now + recent
    return lease_ends_at if is_recent else now + lease


@functools.cache
def _lease_spans(seconds: int) -> tuple[dt.timedelta, dt.timedelta]:
    """Return the length of a lease, and how much of it is left if it was renewed recently."""
    lease = dt.timedelta(seconds=seconds)
    return lease, lease - min(RENEWAL_INTERVAL, lease / 10)


def update_assignment(
    *,
    expected: Mapping[str, Any],
    new_version: int,
    now: dt.datetime,
    lease_ends_at: dt.datetime | None,
    client: str = "",
    edits: _Rows = (),
    reviews: _Rows = (),
    judgments: _Rows = (),
    answers: _Rows = (),
) -> int | None:
    """Write these rows, and open the assignment if it is held, in one statement. Return the new version, or None if the
    assignment is not as expected.

    `expected` is the assignment as the caller read it: `assignment`, `version`, `state`, `revision`,
    `submitted_revision`, `is_reopened`. If any of this has changed, nothing is written.

    This opens a held assignment, with the rater's first message or without any. `claim.sql` inserts one that is open
    from the start: a statement cannot update a row that it inserts, and a second one would cost every claim a round
    trip.
    """
    rows = rawsql.fetch_rows(
        _UPDATE_WITH_ANSWERS if answers else _UPDATE,
        {
            **expected,
            "new_version": new_version,
            **encode_changes(edits=edits, reviews=reviews, judgments=judgments, answers=answers),
            "client": client,
            "now": now,
            "lease_ends_at": lease_ends_at,
        },
    )
    return rows[0][0] if rows else None


def encode_changes(**changes: _Rows) -> dict[str, str]:
    """Return the parameters `edits`, `reviews`, `judgments` and `answers` of update_assignment.sql."""
    return {name: orjson.dumps(rows).decode() for name, rows in changes.items()}


def open_assignment(*, assignment_id: int, rater_id: int, now: dt.datetime) -> Assignment:
    """Open a held trace, which fixes the guideline and what the rater can see. Opening it again changes nothing."""
    assignments = Assignment.objects.select_related("project", "rater", "lane")
    assignment = assignments.filter(pk=assignment_id, rater_id=rater_id).first()
    if assignment is None:  # an undone import has removed it
        raise AssignmentLeaseLost
    eligibility.check_eligibility(assignment.rater, assignment.project)
    if assignment.state == AssignmentState.HELD:
        expected = {
            "assignment": assignment.pk,
            "version": assignment.version,
            "state": assignment.state,
            "revision": assignment.revision,
            "submitted_revision": assignment.submitted_revision,
            "is_reopened": assignment.reopened_at is not None,
        }
        ends_at = now + dt.timedelta(seconds=assignment.project.lease_seconds)
        # It may have lapsed in the meantime. In either case the row is read again.
        update_assignment(expected=expected, new_version=assignment.version, lease_ends_at=ends_at, now=now)
        return open_assignment(assignment_id=assignment_id, rater_id=rater_id, now=now)
    if assignment.state not in (AssignmentState.OPENED, AssignmentState.SUBMITTED):
        raise AssignmentLeaseLost
    return assignment


def open_held(*, assignment_id: int, rater_id: int, now: dt.datetime) -> int | None:
    """Open a trace that is held, in one statement, and return its new version. Return None, and change nothing, if
    `open_assignment` must decide: the trace is no longer held, another request is changing it, or its rater may not
    open it."""
    rows = rawsql.fetch_rows(OPEN_HELD_SQL, {"held": assignment_id, "rater": rater_id, "now": now})
    return rows[0][0] if rows else None


def keep_assignment(*, assignment_id: int, rater_id: int, now: dt.datetime) -> dt.datetime | None:
    """Renew the lease of an open trace for a rater who has not rated for a while. Return its end, or None if the trace
    is not open."""
    opened = Assignment.objects.opened().filter(pk=assignment_id, rater_id=rater_id, lease_ends_at__gt=now)
    seconds = opened.values_list("project__lease_seconds", flat=True).first()
    if seconds is None:
        return None
    ends_at = now + dt.timedelta(seconds=seconds)
    return ends_at if opened.update(lease_ends_at=ends_at) else None


def release_assignment(*, assignment_id: int, now: dt.datetime, reason: str, by: User | None) -> bool:
    """Return a trace to the queue. Return False if the assignment is not open."""
    return bool(_release(Assignment.objects.filter(pk=assignment_id), now, reason, by))


def reclaim_assignment(*, assignment_id: int, now: dt.datetime, by: User) -> bool:
    """Take a trace from its rater on behalf of a lead. Return False if the assignment is not open.

    A rater who has opened it gets a notice and can still submit it.
    """
    assignment = Assignment.objects.filter(pk=assignment_id)
    return bool(_release(assignment, now, "reclaimed by a lead", by, notify=_NOTIFY_OPENED))


def acknowledge_reclaim(*, assignment_id: int, rater_id: int, now: dt.datetime, by: User) -> bool:
    """Record that the rater has read the notice. Return False if there was none."""
    notices = Assignment.objects.filter(pk=assignment_id, rater_id=rater_id, is_end_news=True)
    with transaction.atomic():
        project = notices.values_list("project", flat=True).first()
        is_new = bool(notices.update(is_end_news=False))
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
    """Release prefetched assignments of a project, of a rater, or of some traces. Return how many there were."""
    lookups: dict[str, Any] = {"project": project_id, "rater": rater_id, "trace__in": trace_ids}
    given = {lookup: value for lookup, value in lookups.items() if value is not None}
    if not given:
        raise ValueError("Pass a project, a rater or traces: releasing all held assignments is never intended.")
    held = Assignment.objects.held().filter(**given)
    released = 0
    while True:
        chunk = _release(held, now, reason, by)
        released += len(chunk)
        if len(chunk) < _CHUNK:
            return released


# Whether `lapse_expired_leases` has work. For each project, because its index begins with that.
HAS_EXPIRED_LEASES = """EXISTS (
  SELECT FROM labeling_project p WHERE EXISTS (
    SELECT FROM labeling_assignment a WHERE a.project_id = p.id AND a.lease_ends_at <= %(now)s
      AND (a.state = 'held' OR a.state = 'opened' AND a.purpose NOT IN ('training', 'screening'))))"""


def _expired_leases(now: dt.datetime) -> AssignmentQuerySet:
    return Assignment.objects.filter(lease_ends_at__lte=now).exclude(NEVER_LAPSES)


def lapse_expired_leases(*, now: dt.datetime, project_id: int | None = None, limit: int = 500) -> int:
    """End assignments whose lease has ended, and return how many. Skips those that another process is ending."""
    due = _expired_leases(now)
    due = due if project_id is None else due.filter(project_id=project_id)
    lapsed = 0
    # Usually nothing is due, and this check needs no transaction.
    while lapsed < limit and due.open().exists():
        with transaction.atomic():
            size = min(_CHUNK, limit - lapsed)
            chunk = _end_assignments(
                due, AssignmentState.LAPSED, now, "", limit=size, skip_locked=True, notify=_NOTIFY_EDITED
            )
        lapsed += len(chunk)
        if not chunk:
            break
    return lapsed


def _release(
    assignments: AssignmentQuerySet, now: dt.datetime, reason: str, by: User | None, *, notify: Q = _NOTIFY_NONE
) -> list[Assignment]:
    with transaction.atomic():
        rows = _end_assignments(assignments, AssignmentState.RELEASED, now, reason, notify=notify)
        entries = (
            audit_log.EventEntry("assignment.released", row.project_id, f"assignment:{row.pk}", {"reason": reason})
            for row in rows
        )
        audit_log.log_events(entries, by=by, now=now)
    return rows


def _end_assignments(
    assignments: AssignmentQuerySet,
    state: AssignmentState,
    now: dt.datetime,
    reason: str,
    *,
    limit: int = _CHUNK,
    skip_locked: bool = False,
    notify: Q = _NOTIFY_NONE,
) -> list[Assignment]:
    """End the open ones of these assignments and return their slots. Raters of those in `notify` get a notice."""
    locked = assignments.open().order_by("pk").select_for_update(skip_locked=skip_locked, no_key=True, of=("self",))
    rows = list(locked[:limit])
    Assignment.objects.filter(pk__in=[row.pk for row in rows]).update(
        state=state,
        holds_slot=False,
        ended_at=now,
        ended_reason=reason[:300],
        is_end_news=Case(When(notify, then=True), default=False),
    )
    slots.return_slots(assignments=rows, now=now)
    return rows
