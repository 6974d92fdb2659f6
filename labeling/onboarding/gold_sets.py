"""The traces that everybody gets on the way in: the training set and the screening set of a project."""

import datetime as dt
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import User
from labeling.models import Assignment, Gold, Project, QueueEntry, Rater, Trace
from labeling.models.assignment import OPEN_STATES, AssignmentPurpose, AssignmentQuerySet, AssignmentState
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from labeling.quality.gold import enqueue_gold, make_gold


class SetProgress(NamedTuple):
    """How far a rater is in a set."""

    done: int
    total: int

    @property
    def number(self) -> int:
        """Of the trace that is in hand, or comes next."""
        return min(self.done + 1, self.total)


def serve_gold_set(*, project: Project, use: GoldUse, now: dt.datetime) -> int:
    """Serve all gold of this use, in the order in which it was made; says how many traces are new. Raters who come from
    now on meet the set; who is past it stays so."""
    golds = Gold.objects.active().filter(trace__project=project, use=use).order_by("pk")
    traces = list(golds.values_list("trace_id", flat=True))
    return enqueue_gold(project_id=project.pk, use=use, trace_ids=traces, now=now)


def make_served_gold(*, trace: Trace, use: GoldUse, by: User | None, now: dt.datetime, **known: Any) -> Gold:
    """Gold that is handed out from now on, to everybody on the way in or hidden among the work, and is no longer work
    itself. `known` is what `make_gold` asks for. Raises NotKnowable."""
    with transaction.atomic():
        gold = make_gold(trace=trace, use=use, by=by, now=now, **known)
        enqueue_gold(project_id=trace.project_id, use=use, trace_ids=[trace.pk], now=now)
    return gold


def load_set_progress(*, rater: Rater, purpose: AssignmentPurpose) -> SetProgress:
    mine = assignments_of_attempt(rater, purpose)
    done = mine.submitted().count()
    return SetProgress(done, done + mine.open().count() + _remaining_entries(rater, purpose).count())


def position_in_set(assignment: Assignment) -> tuple[int, int]:
    """Which of how many traces of its set this one is."""
    rater, purpose = assignment.rater, AssignmentPurpose(assignment.purpose)
    before = assignments_of_attempt(rater, purpose).filter(state__in=(*OPEN_STATES, AssignmentState.SUBMITTED))
    earlier = Q(held_at__lt=assignment.held_at) | Q(held_at=assignment.held_at, pk__lt=assignment.pk)
    return before.filter(earlier).count() + 1, load_set_progress(rater=rater, purpose=purpose).total


def is_set_complete(rater: Rater, purpose: AssignmentPurpose) -> bool:
    """Nothing of the set is in hand, of whatever attempt, and nothing is to come."""
    in_hand = Assignment.objects.open().filter(rater=rater, purpose=purpose)
    return not in_hand.exists() and not _remaining_entries(rater, purpose).exists()


def is_set_served(project_id: int, arm: SamplingSource) -> bool:
    return _open_entries(project_id, arm).exists()


def assignments_of_attempt(rater: Rater, purpose: AssignmentPurpose) -> AssignmentQuerySet:
    """What was handed out in the attempt that the rater is at."""
    return Assignment.objects.filter(rater=rater, purpose=purpose, attempt=_attempt_number(rater, purpose))


def _attempt_number(rater: Rater, purpose: AssignmentPurpose) -> int:
    return rater.training_attempt if purpose == AssignmentPurpose.TRAINING else rater.screening_attempt


def _open_entries(project_id: int, arm: str) -> QuerySet[QueueEntry]:
    return QueueEntry.objects.open().filter(lane__project=project_id, lane__arm=arm, lane__closed_at=None)


def _remaining_entries(rater: Rater, purpose: AssignmentPurpose) -> QuerySet[QueueEntry]:
    """Return the entries that the queue will still give out: `queue/claim.sql` leaves out the same."""
    met = Assignment.objects.filter(rater=rater, trace=OuterRef("trace"))
    met = met.exclude(opened_at=None, state__in=[AssignmentState.RELEASED, AssignmentState.LAPSED])
    met = met.filter(Q(purpose=purpose, attempt=_attempt_number(rater, purpose)) | Q(state__in=OPEN_STATES))
    return _open_entries(rater.project_id, purpose).filter(~Exists(met))
