"""A queue to claim from, and the slot balance that must always be zero."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.db.models import Sum

from labeling import queue
from labeling.models import Assignment, Gold, Project, QueueEntry, Rater, Trace
from tests import factories

# Chances at which a project with the default shares tries a sampling source first: gold a tenth; of the rest, held-out
# a twentieth and uniform a fifth.
GOLD, RESERVE, UNIFORM, POLICY = 0.05, 0.11, 0.2, 0.9

_USES = {"gold": "hidden", "training": "training", "screening": "screening"}


def make_traces(project: Project, number: int) -> list[Trace]:
    problem = factories.make_problem(project)
    return [factories.make_trace(project, steps=(), problem=problem) for _ in range(number)]


def fill_lane(project: Project, number: int, *, arm: str = "uniform", slots: int = 1, **options: Any) -> list[int]:
    """Add new traces to the lane of a sampling source, and return their ids in the order in which they are served. In a
    gold lane they are gold."""
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
    """Write those rows of a submit on which the queue depends."""
    Assignment.objects.filter(pk=assignment_id).update(
        state="submitted", submitted_at=now, submitted_revision=1, finish_reason="solution"
    )


def claim_all(rater: Rater, now: dt.datetime, **options: Any) -> list[int]:
    """Claim, open and submit until nothing is left. Return the traces in the order of their assignment."""
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
    """Return for each trace the slots left in its lanes, plus those held, minus those given: always 0."""
    entries = QueueEntry.objects.filter(trace__in=trace_ids).values_list("trace")
    due = {trace: left - given for trace, left, given in entries.annotate(Sum("slots_left"), Sum("slots"))}
    for trace in Assignment.objects.filter(trace__in=trace_ids, holds_slot=True).values_list("trace", flat=True):
        due[trace] = due.get(trace, 0) + 1
    return due


def is_balanced(trace_ids: Sequence[int]) -> bool:
    return not any(slot_balance(trace_ids).values())
