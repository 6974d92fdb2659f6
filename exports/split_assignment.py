"""Decides where the problems of a project sit when it is split, once and for all. Alone changes Seat.

Seats are decided in the order in which problems came, each by those before it, and kept with what they were decided by.
So they hold whatever comes later and whatever is taken back: a file that is undone and brought in again finds its seats
as they were, and what came meanwhile has sat down beside them.
"""

import datetime as dt
from collections.abc import Iterator
from functools import partial

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet

from exports import splits
from exports.models import SplitAssignment
from formats import near_duplicates
from jobs import paging
from jobs.runner import Chunk, JobProgress
from labeling.models import Problem, Project

_HEARTBEAT = JobProgress(0)
_AT_ONCE = 2000  # problems in a transaction


class _AssignmentRound:
    """One go through a project's problems."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.seating = splits.SplitAssigner()
        self.newcomers: list[SplitAssignment] = []
        self.is_overtaken = False  # another snapshot of the project has decided meanwhile


def assign_splits(project: Project) -> Iterator[JobProgress | Chunk]:
    """Until every problem has a seat. Where another was first, its word counts, and what is left is decided by it."""
    while True:
        here = _AssignmentRound(project)
        yield from _load_problems(here)
        if here.newcomers:
            yield from _assign_new(here)
        if not here.is_overtaken:
            return


def _load_problems(here: _AssignmentRound) -> Iterator[JobProgress]:
    """Those that sit, then newcomers: of these alone the texts are read."""
    seats = SplitAssignment.objects.filter(project=here.project)
    known = paging.iterate_by_key(seats, "normal_digest", "signature", "low", "high")
    for n, (_, digest, signature, low, high) in enumerate(known):
        here.seating.add(digest, bytes(signature), splits.SplitInterval(low, high))
        if n % paging.PAGE_SIZE == 0:
            yield _HEARTBEAT
    for n, (_, digest, normal, text) in enumerate(
        paging.iterate_by_key(_unassigned_problems(here), "digest", "normal_digest", "text")
    ):
        signature = near_duplicates.compute_signature(text).tobytes()
        number = here.seating.n_seated + n
        here.seating.add(normal, signature)
        here.newcomers.append(SplitAssignment(number=number, digest=digest, normal_digest=normal, signature=signature))
        if n % paging.PAGE_SIZE == 0:
            yield _HEARTBEAT


def _unassigned_problems(here: _AssignmentRound) -> QuerySet[Problem]:
    seats = SplitAssignment.objects.filter(project=here.project, digest=OuterRef("digest"))
    return Problem.objects.filter(~Exists(seats), project=here.project)


def _assign_new(here: _AssignmentRound) -> Iterator[JobProgress | Chunk]:
    seated: list[SplitAssignment] = []
    for seat in here.seating.decide():
        if seat is None:
            yield _HEARTBEAT
            continue
        row = here.newcomers[len(seated)]
        row.project, row.low, row.high = here.project, seat.low, seat.high
        seated.append(row)
        if len(seated) % _AT_ONCE == 0 or len(seated) == len(here.newcomers):
            yield partial(_save_assignments, here, seated[-((len(seated) - 1) % _AT_ONCE + 1) :])
            if here.is_overtaken:
                return


def _save_assignments(here: _AssignmentRound, seats: list[SplitAssignment], now: dt.datetime) -> JobProgress:
    """All of them or none: two that decide at the same time give out the same numbers."""
    for seat in seats:
        seat.decided_at = now
    try:
        with transaction.atomic():
            SplitAssignment.objects.bulk_create(seats)
    except IntegrityError:
        here.is_overtaken = True
    return _HEARTBEAT
