"""The traces that everybody gets on the way in: the training set and the screening set of a project."""

import datetime as dt
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import User
from labeling import quality
from labeling.models import Assignment, Gold, Project, QueueEntry, Rater, Trace
from labeling.models.assignment import OPEN_STATES, AssignmentQuerySet, AssignmentState, Purpose
from labeling.models.quality import GoldUse
from labeling.models.queue import Arm


class Progress(NamedTuple):
    """How far a rater is in a set."""

    done: int
    total: int

    @property
    def number(self) -> int:
        """Of the trace that is in hand, or comes next."""
        return min(self.done + 1, self.total)


def put_up(*, project: Project, use: GoldUse, now: dt.datetime) -> int:
    """Serve all gold of this use, in the order in which it was made; says how many traces are new. Raters who come from
    now on meet the set; who is past it stays so."""
    golds = Gold.objects.active().filter(trace__project=project, use=use).order_by("pk")
    traces = list(golds.values_list("trace_id", flat=True))
    return quality.hand_out(project_id=project.pk, use=use, trace_ids=traces, now=now)


def make_gold(*, trace: Trace, use: GoldUse, by: User | None, now: dt.datetime, **known: Any) -> Gold:
    """Gold that is handed out from now on, to everybody on the way in or hidden among the work, and is no longer work
    itself. `known` is what `quality.make_gold` asks for. Raises NotKnowable."""
    with transaction.atomic():
        gold = quality.make_gold(trace=trace, use=use, by=by, now=now, **known)
        quality.hand_out(project_id=trace.project_id, use=use, trace_ids=[trace.pk], now=now)
    return gold


def progress(*, rater: Rater, purpose: Purpose) -> Progress:
    mine = of_attempt(rater, purpose)
    done = mine.submitted().count()
    return Progress(done, done + mine.open().count() + _to_come(rater, purpose).count())


def place(assignment: Assignment) -> tuple[int, int]:
    """Which of how many traces of its set this one is."""
    rater, purpose = assignment.rater, Purpose(assignment.purpose)
    before = of_attempt(rater, purpose).filter(state__in=(*OPEN_STATES, AssignmentState.SUBMITTED))
    earlier = Q(held_at__lt=assignment.held_at) | Q(held_at=assignment.held_at, pk__lt=assignment.pk)
    return before.filter(earlier).count() + 1, progress(rater=rater, purpose=purpose).total


def is_complete(rater: Rater, purpose: Purpose) -> bool:
    """Nothing of the set is in hand, of whatever attempt, and nothing is to come."""
    in_hand = Assignment.objects.open().filter(rater=rater, purpose=purpose)
    return not in_hand.exists() and not _to_come(rater, purpose).exists()


def is_put_up(project_id: int, arm: Arm) -> bool:
    return _served(project_id, arm).exists()


def of_attempt(rater: Rater, purpose: Purpose) -> AssignmentQuerySet:
    """What was handed out in the attempt that the rater is at."""
    return Assignment.objects.filter(rater=rater, purpose=purpose, attempt=_attempt(rater, purpose))


def _attempt(rater: Rater, purpose: Purpose) -> int:
    return rater.training_attempt if purpose == Purpose.TRAINING else rater.screening_attempt


def _served(project_id: int, arm: str) -> QuerySet[QueueEntry]:
    return QueueEntry.objects.open().filter(lane__project=project_id, lane__arm=arm, lane__closed_at=None)


def _to_come(rater: Rater, purpose: Purpose) -> QuerySet[QueueEntry]:
    """Return the entries that the queue will still give out: `queue/claim.sql` leaves out the same."""
    met = Assignment.objects.filter(rater=rater, trace=OuterRef("trace"))
    met = met.exclude(opened_at=None, state__in=[AssignmentState.RELEASED, AssignmentState.LAPSED])
    met = met.filter(Q(purpose=purpose, attempt=_attempt(rater, purpose)) | Q(state__in=OPEN_STATES))
    return _served(rater.project_id, purpose).filter(~Exists(met))
