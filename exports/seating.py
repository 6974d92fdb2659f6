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
from exports.models import Seat
from jobs import paging
from jobs.runner import Chunk, Progress
from labeling.models import Problem, Project
from labeling.texts import near_duplicates

_ALIVE = Progress(0)
_AT_ONCE = 2000  # problems in a transaction


class _Round:
    """One go through a project's problems."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.seating = splits.Seating()
        self.newcomers: list[Seat] = []
        self.is_overtaken = False  # another snapshot of the project has decided meanwhile


def decide(project: Project) -> Iterator[Progress | Chunk]:
    """Until every problem has a seat. Where another was first, its word counts, and what is left is decided by it."""
    while True:
        here = _Round(project)
        yield from _gather(here)
        if here.newcomers:
            yield from _seat(here)
        if not here.is_overtaken:
            return


def _gather(here: _Round) -> Iterator[Progress]:
    """Those that sit, then newcomers: of these alone the texts are read."""
    seats = Seat.objects.filter(project=here.project)
    known = paging.by_key(seats, "normal_digest", "signature", "low", "high")
    for n, (_, digest, signature, low, high) in enumerate(known):
        here.seating.add(digest, bytes(signature), splits.Seat(low, high))
        if n % paging.PAGE == 0:
            yield _ALIVE
    for n, (_, digest, normal, text) in enumerate(paging.by_key(_unseated(here), "digest", "normal_digest", "text")):
        signature = near_duplicates.signature(text).tobytes()
        number = here.seating.n_seated + n
        here.seating.add(normal, signature)
        here.newcomers.append(Seat(number=number, digest=digest, normal_digest=normal, signature=signature))
        if n % paging.PAGE == 0:
            yield _ALIVE


def _unseated(here: _Round) -> QuerySet[Problem]:
    seats = Seat.objects.filter(project=here.project, digest=OuterRef("digest"))
    return Problem.objects.filter(~Exists(seats), project=here.project)


def _seat(here: _Round) -> Iterator[Progress | Chunk]:
    seated: list[Seat] = []
    for seat in here.seating.decide():
        if seat is None:
            yield _ALIVE
            continue
        row = here.newcomers[len(seated)]
        row.project, row.low, row.high = here.project, seat.low, seat.high
        seated.append(row)
        if len(seated) % _AT_ONCE == 0 or len(seated) == len(here.newcomers):
            yield partial(_keep, here, seated[-((len(seated) - 1) % _AT_ONCE + 1) :])
            if here.is_overtaken:
                return


def _keep(here: _Round, seats: list[Seat], now: dt.datetime) -> Progress:
    """All of them or none: two that decide at the same time give out the same numbers."""
    for seat in seats:
        seat.decided_at = now
    try:
        with transaction.atomic():
            Seat.objects.bulk_create(seats)
    except IntegrityError:
        here.is_overtaken = True
    return _ALIVE
