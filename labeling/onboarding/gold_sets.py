"""The training set and the screening set of a project: the same traces for every new rater."""

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
    done: int
    total: int

    @property
    def number(self) -> int:
        """The number of the open trace, or of the next one."""
        return min(self.done + 1, self.total)


def serve_gold_set(*, project: Project, use: GoldUse, now: dt.datetime) -> int:
    """Serve all gold of this use in the order of its creation, and return how many traces are new. Only raters who have
    not finished the set get them."""
    golds = Gold.objects.active().filter(trace__project=project, use=use).order_by("pk")
    traces = list(golds.values_list("trace_id", flat=True))
    return enqueue_gold(project_id=project.pk, use=use, trace_ids=traces, now=now)


def make_served_gold(*, trace: Trace, use: GoldUse, by: User | None, now: dt.datetime, **answer: Any) -> Gold:
    """Make a trace gold and serve it, in its set or hidden among the work. It is no longer work.

    `answer` has the other arguments of `make_gold`. Raises InvalidGold.
    """
    with transaction.atomic():
        gold = make_gold(trace=trace, use=use, by=by, now=now, **answer)
        enqueue_gold(project_id=trace.project_id, use=use, trace_ids=[trace.pk], now=now)
    return gold


def load_set_progress(*, rater: Rater, purpose: AssignmentPurpose) -> SetProgress:
    assignments = assignments_of_attempt(rater, purpose)
    done = assignments.submitted().count()
    return SetProgress(done, done + assignments.open().count() + _remaining_entries(rater, purpose).count())


def position_in_set(assignment: Assignment) -> tuple[int, int]:
    """Return the number of this trace in its set, and the size of the set."""
    rater, purpose = assignment.rater, AssignmentPurpose(assignment.purpose)
    others = assignments_of_attempt(rater, purpose).filter(state__in=(*OPEN_STATES, AssignmentState.SUBMITTED))
    earlier = Q(held_at__lt=assignment.held_at) | Q(held_at=assignment.held_at, pk__lt=assignment.pk)
    return others.filter(earlier).count() + 1, load_set_progress(rater=rater, purpose=purpose).total


def is_set_complete(rater: Rater, purpose: AssignmentPurpose) -> bool:
    """Return whether no trace of the set is open, in any attempt, and none is left."""
    open_ones = Assignment.objects.open().filter(rater=rater, purpose=purpose)
    return not open_ones.exists() and not _remaining_entries(rater, purpose).exists()


def is_set_served(project_id: int, arm: SamplingSource) -> bool:
    return _open_entries(project_id, arm).exists()


def assignments_of_attempt(rater: Rater, purpose: AssignmentPurpose) -> AssignmentQuerySet:
    """Return the assignments of the current attempt."""
    return Assignment.objects.filter(rater=rater, purpose=purpose, attempt=_attempt_number(rater, purpose))


def _attempt_number(rater: Rater, purpose: AssignmentPurpose) -> int:
    return rater.training_attempt if purpose == AssignmentPurpose.TRAINING else rater.screening_attempt


def _open_entries(project_id: int, arm: str) -> QuerySet[QueueEntry]:
    return QueueEntry.objects.open().filter(lane__project=project_id, lane__arm=arm, lane__closed_at=None)


def _remaining_entries(rater: Rater, purpose: AssignmentPurpose) -> QuerySet[QueueEntry]:
    """Return the entries that the queue will still serve. `queue/claim.sql` excludes the same ones."""
    earlier = Assignment.objects.filter(rater=rater, trace=OuterRef("trace"))
    earlier = earlier.exclude(opened_at=None, state__in=[AssignmentState.RELEASED, AssignmentState.LAPSED])
    earlier = earlier.filter(Q(purpose=purpose, attempt=_attempt_number(rater, purpose)) | Q(state__in=OPEN_STATES))
    return _open_entries(rater.project_id, purpose).filter(~Exists(earlier))
