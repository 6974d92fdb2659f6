"""Count the labels that are left to collect, for the forecast of their cost. Reopened traces have slots again, so they
are included."""

from django.db.models import Exists, OuterRef, Sum

from labeling.models import AddedSlot, Assignment, QueueEntry, Settlement
from labeling.models.assignment import AssignmentPurpose
from labeling.models.consensus import SettlementState
from labeling.queue.slots import GOLD_SOURCES
from stats.cost_forecast import RemainingWork

_FINISHED = (SettlementState.SETTLED, SettlementState.CONTESTED, SettlementState.DECIDED, SettlementState.ASKED)


def count_remaining(project_id: int) -> RemainingWork:
    entries = QueueEntry.objects.open().filter(lane__project=project_id, lane__closed_at=None)
    work = entries.exclude(lane__arm__in=GOLD_SOURCES)
    waiting = work.aggregate(n=Sum("slots_left"))["n"] or 0
    open_work = Assignment.objects.open().filter(project=project_id, purpose=AssignmentPurpose.WORK).count()
    labeled_here = Exists(QueueEntry.objects.filter(trace=OuterRef("trace")))
    finished = Settlement.objects.filter(labeled_here, project=project_id, state__in=_FINISHED).count()
    unlabeled = work.exclude(trace__settlement__state__in=_FINISHED).values("trace").distinct().count()
    further = AddedSlot.objects.filter(trace__project=project_id).count()
    return RemainingWork(slots=waiting + open_work, unfinished=unlabeled, finished=finished, further=further)
