"""A queue to claim from, and the sum that must always be right."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.db.models import Sum

from labeling import queue
from labeling.models import Assignment, Gold, Project, QueueEntry, Rater, Trace
from tests import factories

# Chances at which a project with the default shares serves an arm first: gold a tenth; of the rest, reserve a
# twentieth and uniform a fifth.
GOLD, RESERVE, UNIFORM, POLICY = 0.05, 0.11, 0.2, 0.9

_USES = {"gold": "hidden", "training": "training", "screening": "screening"}


def make_traces(project: Project, number: int) -> list[Trace]:
    problem = factories.make_problem(project)
    return [factories.make_trace(project, steps=(), problem=problem) for _ in range(number)]


def fill_lane(project: Project, number: int, *, arm: str = "uniform", slots: int = 1, **options: Any) -> list[int]:
    """So many new traces in the lane of an arm; their ids in the order in which they will be read. In a lane of gold
    they are gold."""
    ids = [trace.pk for trace in make_traces(project, number)]
    if use := _USES.get(arm):
        known = (Gold(trace_id=pk, use=use, accepted_first_errors=[None], made_at=factories.NOW) for pk in ids)
        Gold.objects.bulk_create(known)
    keys = {trace_id: -place for place, trace_id in enumerate(ids)}
    queue.enqueue(project_id=project.pk, arm=arm, trace_ids=ids, slots=slots, now=factories.NOW, keys=keys, **options)
    return ids


def make_raters(project: Project, number: int, **fields: Any) -> list[Rater]:
    return [factories.make_rater(project, **fields) for _ in range(number)]


def submit_assignment(assignment_id: int, now: dt.datetime) -> None:
    """Write what a submit writes, as far as the queue depends on it."""
    Assignment.objects.filter(pk=assignment_id).update(
        state="submitted", submitted_at=now, submitted_revision=1, finish_reason="solution"
    )


def claim_all(rater: Rater, now: dt.datetime, **options: Any) -> list[int]:
    """Claim, open and submit until nothing is left; the traces in the order in which they came."""
    traces: list[int] = []
    while True:
        now += dt.timedelta(seconds=1)
        try:
            claim = queue.claim_trace(rater_id=rater.pk, now=now, opened=True, **options)
        except queue.NothingLeft:
            return traces
        submit_assignment(claim.assignment_id, now)
        traces.append(claim.trace_id)


def slot_balance(trace_ids: Sequence[int]) -> dict[int, int]:
    """By trace: slots left in its lanes, plus those held, minus those given. Always nothing."""
    entries = QueueEntry.objects.filter(trace__in=trace_ids).values_list("trace")
    due = {trace: left - given for trace, left, given in entries.annotate(Sum("slots_left"), Sum("slots"))}
    for trace in Assignment.objects.filter(trace__in=trace_ids, holds_slot=True).values_list("trace", flat=True):
        due[trace] = due.get(trace, 0) + 1
    return due


def is_balanced(trace_ids: Sequence[int]) -> bool:
    return not any(slot_balance(trace_ids).values())
