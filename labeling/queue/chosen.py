"""Traces that a person puts first, for everyone or for a group of raters with a skill.

Their free slots move to a lane of their own, where `claim.sql` looks first. Labels from there count in the population
`chosen`: for consensus, datasets and pay like any other, but not in headline figures, because a person chose the trace.
A slot keeps counting as given in the lane that it came from. Held-out traces cannot be chosen: they must stay a fair
sample.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from django.db import transaction
from django.db.models import F, QuerySet

from accounts.models import User
from events import audit_log
from labeling.models import Project, QueueEntry, Rater, RaterGroup
from labeling.models.queue import SamplingSource
from labeling.queue import lane_entries, leases, slots
from labeling.queue.slots import GOLD_SOURCES, WORK_SOURCES

_CHUNK = 200


def ensure_personal_group(*, rater: Rater, now: dt.datetime) -> RaterGroup:
    """Return the group that has only this rater."""
    group, is_new = RaterGroup.objects.get_or_create(
        person=rater, defaults={"project_id": rater.project_id, "made_at": now}
    )
    if is_new:
        group.raters.add(rater)
    return group


def save_group(
    *, project: Project, name: str, raters: Collection[Rater], by: User | None, now: dt.datetime
) -> RaterGroup:
    """Create a group, or replace its raters. Traces of a group without raters wait until it has some."""
    with transaction.atomic():
        group, _ = RaterGroup.objects.named().get_or_create(project=project, name=name, defaults={"made_at": now})
        group.raters.set(raters)
        detail = {"name": name, "raters": sorted(rater.pk for rater in raters)}
        subject = f"group:{group.pk}"
        audit_log.log_event(what="group.saved", by=by, now=now, project=project.pk, subject=subject, detail=detail)
    return group


def delete_group(*, group: RaterGroup, by: User | None, now: dt.datetime) -> int:
    """Delete a named group. Return how many of its traces went back to their usual order. Open ones can be finished;
    if one is returned later, it comes first for everyone."""
    RaterGroup.objects.filter(pk=group.pk).update(deleted_at=now)
    waiting = QueueEntry.objects.open().filter(lane__group=group)
    traces = list(waiting.order_by("trace_id").values_list("trace_id", flat=True))
    n = unchoose_traces(project_id=group.project_id, trace_ids=traces, by=by, now=now)
    detail = {"name": group.name, "traces": n}
    subject = f"group:{group.pk}"
    audit_log.log_event(what="group.deleted", by=by, now=now, project=group.project_id, subject=subject, detail=detail)
    return n


def choose_traces(
    *, project_id: int, trace_ids: Sequence[int], group: RaterGroup | None, by: User | None, now: dt.datetime
) -> int:
    """Put traces first, for everyone or one group, and return how many had free slots. Prefetched ones are released
    first."""
    n_moved = 0
    for chunk in _chunks(trace_ids):
        leases.release_held(trace_ids=chunk, now=now, reason="chosen for others", by=by)
        with transaction.atomic():
            active = slots.lock_active_traces(trace_ids=chunk)
            lane = slots.ensure_lane(
                project_id=project_id, arm=SamplingSource.CHOSEN, group_id=group.pk if group else None
            )
            entries = _lock_free_work(project_id, active).exclude(lane=lane)
            moved = _move(list(entries), group, now)
            detail = {"group": group.pk if group else None}
            events = (audit_log.EventEntry("trace.chosen", project_id, f"trace:{pk}", detail) for pk in sorted(moved))
            audit_log.log_events(events, by=by, now=now)
        n_moved += len(moved)
    return n_moved


def _move(entries: Sequence[QueueEntry], group: RaterGroup | None, now: dt.datetime) -> set[int]:
    for entry in entries:
        slots.move_to_chosen(entry=entry, group_id=group.pk if group else None, now=now)
    return {entry.trace_id for entry in entries}


def unchoose_traces(*, project_id: int, trace_ids: Sequence[int], by: User | None, now: dt.datetime) -> int:
    """Return chosen traces to the lanes that they came from, and return how many."""
    n_returned = 0
    for chunk in _chunks(trace_ids):
        leases.release_held(trace_ids=chunk, now=now, reason="no longer chosen", by=by)
        with transaction.atomic():
            active = slots.lock_active_traces(trace_ids=chunk)
            chosen = list(_lock_free_work(project_id, active).filter(lane__arm=SamplingSource.CHOSEN))
            for entry in chosen:
                _give_back(entry, now)
            returned = sorted({entry.trace_id for entry in chosen})
            events = (audit_log.EventEntry("trace.unchosen", project_id, f"trace:{pk}") for pk in returned)
            audit_log.log_events(events, by=by, now=now)
        n_returned += len(returned)
    return n_returned


def _give_back(entry: QueueEntry, now: dt.datetime) -> None:
    """Return slots to the open entry of ordinary work, up to the number that it was given; the rest go to the top-up
    lane."""
    left = entry.slots_left
    QueueEntry.objects.filter(pk=entry.pk).update(slots_left=0)
    home = QueueEntry.objects.filter(trace=entry.trace_id, lane__arm__in=WORK_SOURCES, lane__closed_at=None)
    for row in home.select_for_update(no_key=True, of=("self",)).order_by("pk"):
        back = min(left, row.slots - row.slots_left)
        QueueEntry.objects.filter(pk=row.pk).update(slots_left=F("slots_left") + back)
        lane_entries.reset_exhausted_cursors(row.lane_id, now)
        left -= back
    if left:
        slots.add_top_up(entry=entry, number=left, now=now)


def _lock_free_work(project_id: int, trace_ids: Collection[int]) -> QuerySet[QueueEntry]:
    entries = QueueEntry.objects.open().filter(lane__project=project_id, trace_id__in=trace_ids)
    entries = entries.exclude(lane__arm__in=GOLD_SOURCES).exclude(trace__problem__is_reserve=True)
    entries = entries.select_related("lane").order_by("trace_id", "lane_id")
    return entries.select_for_update(no_key=True, of=("self",))


def _chunks(trace_ids: Sequence[int]) -> Iterator[list[int]]:
    ids = iter(sorted(set(trace_ids)))
    while chunk := list(islice(ids, _CHUNK)):
        yield chunk
