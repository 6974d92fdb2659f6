"""Set aside submissions of a rater that should not count, and undo it.

A submission that is set aside stays stored and paid, but counts in no consensus, tally, agreement, rater model or
dataset. `set_aside_labels` records the decision, and a job carries it out: it marks the submissions trace by trace, in
one transaction with the new tallies, and settles each trace from the labels that remain. If they are too few, the slots
of the submissions are given to other raters. Undoing takes the slots back; a submission whose slot was taken in the
meantime counts as extra. If nothing else has happened to a trace, its state is then what it was before, whatever a
newer rater model finds.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling import queue
from labeling.models import (
    AddedSlot,
    Assignment,
    EarlierSettlement,
    FirstErrorReport,
    Project,
    SetAside,
    Settlement,
)
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose, Population
from labeling.models.consensus import SettlementState
from labeling.quality import adjudication, project_stats, rater_model, resolve, settlements, tallies, workdays
from labeling.quality.redundancy import ResolutionCourse

KIND = "labeling.set_aside"
_RESTORED_COLUMNS = ("state", "reason", "n_readings", "n_votes", "differs_at", "consensus_revision", "changed_at")
CHUNK = 100  # traces per transaction
_PREVIEW_CHUNK = 500
SESSION_GAP = dt.timedelta(minutes=30)
MAX_SESSIONS = 20


class NothingToSetAside(Exception):
    """No submission that counts is selected. The message is meant for users."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "There are no labels to set aside: none were submitted in this period, or all of them are already"
                " set aside."
            )
        )


class LabelScope(NamedTuple):
    """The submissions of a rater to set aside: those in a period of time (both ends inclusive), or one assignment."""

    rater_id: int
    until: dt.datetime
    since: dt.datetime | None = None
    assignment_id: int | None = None


class SetAsideImpact(NamedTuple):
    """What setting labels aside would do, measured on up to a limit of traces."""

    n_labels: int
    n_traces: int  # with labels of work
    n_resolved: int  # how many of these traces are settled or decided now
    n_decided: int  # how many of these a person decided: the decision stays
    n_changed: int  # settled again, with another first error
    n_kept: int  # settled again, with the same first error
    n_reopened: int  # settled now, and not settled by the labels that remain
    n_missing: int  # labels to collect again
    ms_per_label: int | None  # in the project; None if no time is known
    is_more: bool  # whether there are more traces than were measured


class LabelSession(NamedTuple):
    """Submissions of a rater without a long break between them."""

    since: dt.datetime
    until: dt.datetime
    n_labels: int


def select_labels(scope: LabelScope) -> QuerySet[Assignment]:
    """Return the submissions of a scope that count."""
    rows = Assignment.objects.counted().filter(rater_id=scope.rater_id)
    if scope.assignment_id is not None:
        return rows.filter(pk=scope.assignment_id)
    if scope.since is not None:
        return rows.filter(submitted_at__gte=scope.since, submitted_at__lte=scope.until)
    return rows.filter(Q(submitted_at=None) | Q(submitted_at__lte=scope.until))


def list_sessions(*, rater_id: int) -> list[LabelSession]:
    """Return the latest sessions of a rater, the newest first."""
    rows = Assignment.objects.counted().filter(rater_id=rater_id, submitted_at__isnull=False)
    sessions: list[LabelSession] = []
    for at in rows.order_by("-submitted_at").values_list("submitted_at", flat=True).iterator():
        assert at is not None
        if sessions and sessions[-1].since - at <= SESSION_GAP:
            sessions[-1] = LabelSession(at, sessions[-1].until, sessions[-1].n_labels + 1)
        elif len(sessions) == MAX_SESSIONS:
            break
        else:
            sessions.append(LabelSession(at, at, 1))
    return sessions


def measure_impact(*, project: Project, scope: LabelScope, at_most: int = 10_000) -> SetAsideImpact:
    """Measure what setting these labels aside would do, without changing anything."""
    labels = dict(select_labels(scope).values_list("pk", "trace_id"))
    work = select_labels(scope).filter(purpose=AssignmentPurpose.WORK)
    n_traces = work.values("trace_id").distinct().count()
    traces = sorted(set(work.order_by("trace_id").values_list("trace_id", flat=True)[:at_most]))
    aside, previews = frozenset(labels), []
    for start in range(0, len(traces), _PREVIEW_CHUNK):
        part = traces[start : start + _PREVIEW_CHUNK]
        previews += resolve.preview_without(project=project, trace_ids=part, assignments=aside)
    settled = [each for each in previews if each.was_resolved and not each.was_decided]
    still = [each for each in settled if each.course == ResolutionCourse.SETTLED]
    return SetAsideImpact(
        n_labels=len(labels),
        n_traces=n_traces,
        n_resolved=sum(each.was_resolved for each in previews),
        n_decided=sum(each.was_decided for each in previews),
        n_changed=sum(each.changes for each in still),
        n_kept=sum(not each.changes for each in still),
        n_reopened=len(settled) - len(still),
        n_missing=sum(each.n_missing for each in previews),
        ms_per_label=workdays.mean_label_time(project.pk),
        is_more=n_traces > len(traces),
    )


def set_aside_labels(
    *, project: Project, scope: LabelScope, reason: str, by: User | None, now: dt.datetime
) -> SetAside:
    """Record the decision, and request the job that carries it out. Raises NothingToSetAside."""
    if not select_labels(scope).exists():
        raise NothingToSetAside
    with transaction.atomic():
        row = SetAside.objects.create(
            project=project,
            rater_id=scope.rater_id,
            assignment_id=scope.assignment_id,
            since_at=scope.since,
            until_at=scope.until,
            reason=reason[:300],
            made_at=now,
            made_by=by,
        )
        _log_event("labels.set_aside", row, by, now, reason=row.reason, labels=select_labels(scope).count())
        _request_job(row, by, now)
    return row


def undo_set_aside(*, set_aside: SetAside, by: User | None, now: dt.datetime) -> bool:
    """Let the labels count again, and request the job that carries it out. Return False if it was undone already."""
    with transaction.atomic():
        if not SetAside.objects.filter(pk=set_aside.pk, undone_at=None).update(undone_at=now, undone_by=by):
            return False
        _log_event("labels.restored", set_aside, by, now)
        _request_job(set_aside, by, now)
    return True


def _request_job(row: SetAside, by: User | None, now: dt.datetime) -> Job:
    arguments = {"project": row.project_id, "set_aside": row.pk}
    return control.request_job(kind=KIND, subject=f"project:{row.project_id}", arguments=arguments, by=by, now=now)


def _log_event(what: str, row: SetAside, by: User | None, now: dt.datetime, **detail: object) -> None:
    detail |= {"set_aside": row.pk, "assignment": row.assignment_id}
    subject = f"rater:{row.rater_id}"
    audit_log.log_event(what=what, by=by, now=now, project=row.project_id, subject=subject, detail=detail)


# The job


def chunks(job: Job) -> Iterator[Chunk]:
    """Mark the submissions, or unmark them if the decision has been undone, a few traces per transaction."""
    row = SetAside.objects.select_related("project").get(pk=job.arguments["set_aside"])
    is_undo = row.undone_at is not None
    marked = Assignment.objects.filter(set_aside=row)
    scope = LabelScope(row.rater_id, row.until_at, row.since_at, row.assignment_id)
    rows = marked if is_undo else select_labels(scope)
    traces = rows.order_by("trace_id").values_list("trace_id", flat=True).distinct()
    total = job.total or traces.count()
    while chunk := list(traces.filter(trace_id__gt=job.checkpoint.get("after", 0))[:CHUNK]):
        yield partial(_change_chunk, job, row.pk, rows, chunk, is_undo, total)
    yield partial(_finish, row.project_id, total)


def _change_chunk(
    job: Job,
    set_aside: int,
    rows: QuerySet[Assignment],
    traces: list[int],
    is_undo: bool,
    total: int,
    now: dt.datetime,
) -> JobProgress:
    row = SetAside.objects.select_for_update(no_key=True).get(pk=set_aside)
    settlements.lock_traces(trace_ids=traces)
    labels = rows.filter(trace_id__in=traces)
    untouched: set[int] = set()
    if is_undo:
        with settlements.track_totals(project_id=row.project_id, trace_ids=traces):
            _restore(list(labels.order_by("trace_id", "pk")), traces, now)
        untouched = _find_untouched(traces)
        _restore_settlements(row.project_id, untouched)
    elif row.undone_at is None:
        _save_earlier_settlements(traces, now)
        with settlements.track_totals(project_id=row.project_id, trace_ids=traces):
            labels.update(set_aside=row)
    tallies.recount_tallies(trace_ids=traces, now=now)
    changed = [trace for trace in traces if trace not in untouched]
    Settlement.objects.filter(trace_id__in=changed).update(is_due=True)
    resolve.resolve_or_retry(project_id=row.project_id, trace_ids=changed, now=now)
    if is_undo:
        _restore_earlier_settlements(row.project_id, traces)
    else:
        adjudication.renew_decided_labels(trace_ids=traces, now=now)
    project_stats.mark_stats_stale(project_id=row.project_id, now=now)
    return JobProgress(job.done + len(traces), total, {"after": traces[-1]})


def _finish(project_id: int, total: int, now: dt.datetime) -> JobProgress:
    rater_model.enqueue_fit(project_id=project_id, now=now)
    return JobProgress(total, total)


def _save_earlier_settlements(traces: Sequence[int], now: dt.datetime) -> None:
    rows = Settlement.objects.filter(trace_id__in=traces, is_due=False).values("trace_id", *_RESTORED_COLUMNS)
    n_slots = queue.count_initial_slots(trace_ids=traces)
    EarlierSettlement.objects.bulk_create(
        [EarlierSettlement(**row, n_slots=n_slots.get(row["trace_id"], 0), saved_at=now) for row in rows],
        ignore_conflicts=True,
    )


def _restore(labels: Sequence[Assignment], traces: Sequence[int], now: dt.datetime) -> None:
    Assignment.objects.filter(pk__in=[row.pk for row in labels]).update(set_aside=None)
    queue.restore_slots(assignments=[row for row in labels if _gave_slot_back(row)], now=now)
    added = AddedSlot.objects.filter(trace__in=traces, added_at__gte=F("trace__earlier_settlement__saved_at"))
    since = "trace__earlier_settlement__saved_at"
    for trace_id, saved_at in added.order_by("trace_id").values_list("trace_id", since).distinct():
        queue.remove_added_slots(trace_id=trace_id, since=saved_at, now=now)


def _find_untouched(traces: Sequence[int]) -> set[int]:
    """Return the traces to which nothing but setting aside has happened since their settlement was saved: no claim, no
    submission, no act of a person, and no change of the overlap. None of their labels is set aside any longer."""
    rows = Settlement.objects.filter(trace_id__in=traces, is_due=False, trace__earlier_settlement__isnull=False)
    earlier, acts = "trace__earlier_settlement__", (resolve.REOPENED, resolve.SENT_BACK)
    for prefix in ("", earlier):
        rows = rows.exclude(**{f"{prefix}state": SettlementState.DECIDED}).exclude(**{f"{prefix}reason__in": acts})
    of_trace = Assignment.objects.filter(trace=OuterRef("trace_id"))
    since = OuterRef(f"{earlier}saved_at")
    happened = Q(set_aside__isnull=False) | Q(held_at__gt=since) | Q(submissions__submitted_at__gt=since)
    rows = rows.exclude(Exists(of_trace.filter(happened)))
    n_slots = queue.count_initial_slots(trace_ids=traces)
    reports = FirstErrorReport.objects.filter(trace__in=traces).values("trace_id").annotate(n=Count("pk"))
    n_reports = dict(reports.values_list("trace_id", "n"))
    saved = rows.values_list("trace_id", f"{earlier}n_slots", f"{earlier}n_readings")
    return {trace for trace, *numbers in saved if [n_slots.get(trace, 0), n_reports.get(trace, 0)] == numbers}


def _restore_settlements(project_id: int, traces: Collection[int]) -> None:
    """Restore the settlements of these traces as they were."""
    earlier = EarlierSettlement.objects.in_bulk(sorted(traces))
    rows = list(Settlement.objects.filter(trace_id__in=earlier))
    with settlements.track_totals(project_id=project_id, trace_ids=list(earlier)):
        for row in rows:
            for column in _RESTORED_COLUMNS:
                setattr(row, column, getattr(earlier[row.trace_id], column))
        # Updates existing rows, much faster than `bulk_update`.
        Settlement.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["trace"], update_fields=list(_RESTORED_COLUMNS)
        )
    EarlierSettlement.objects.filter(trace_id__in=earlier).delete()


def _gave_slot_back(row: Assignment) -> bool:
    is_work = row.origin == AssignmentOrigin.HERE and row.purpose == AssignmentPurpose.WORK
    return is_work and not row.holds_slot and row.population != Population.EXTRA


def _restore_earlier_settlements(project_id: int, traces: Sequence[int]) -> None:
    """Restore `changed_at` of traces that have no labels set aside any longer, if their state is what it was before. A
    decision refers to its own labels again."""
    still = Assignment.objects.filter(set_aside__isnull=False, trace_id__in=traces)
    earlier = EarlierSettlement.objects.filter(trace_id__in=traces).exclude(trace_id__in=still.values("trace_id"))
    before = earlier.in_bulk()
    with settlements.track_totals(project_id=project_id, trace_ids=list(before)):
        restored = []
        for row in Settlement.objects.filter(trace_id__in=before):
            was = before[row.trace_id]
            if row.state == SettlementState.DECIDED and row.changed_at == was.changed_at:
                row.consensus_revision = was.consensus_revision
            if (row.state, row.reason, row.consensus_revision) == (was.state, was.reason, was.consensus_revision):
                row.changed_at = was.changed_at
                restored.append(row)
        # Updates existing rows, much faster than `bulk_update`.
        Settlement.objects.bulk_create(
            restored,
            update_conflicts=True,
            unique_fields=["trace"],
            update_fields=["changed_at", "consensus_revision"],
        )
    EarlierSettlement.objects.filter(trace_id__in=before).delete()
