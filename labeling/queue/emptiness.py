"""Why nothing is left for somebody. Reads alone: one query for however many raters are asked about."""

from collections.abc import Collection

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from labeling.models import Assignment, Lane, QueueEntry, Rater
from labeling.models.assignment import Purpose
from labeling.models.queue import Arm
from labeling.models.rater import RaterStage
from labeling.queue import refusals

_APART = (Arm.TRAINING, Arm.SCREENING, Arm.GOLD)  # lanes that are no work of their own


def why_nothing(raters: Collection[int]) -> dict[int, refusals.NothingLeft]:
    """For raters to whom nothing can be handed now, by rater. It reads the open slots and the open leases of their
    projects, by their indexes, and stops at the first that tells."""
    mine = Assignment.objects.filter(rater=OuterRef("pk"))
    lanes = _with_open_slots()
    told = Rater.objects.filter(pk__in=raters).annotate(
        free_at=Subquery(_held_by_others().values("lease_ends_at")[:1]),
        is_served=Exists(lanes.exclude(arm__in=_APART)),
        is_taught=Exists(lanes.filter(arm=OuterRef("stage"))),
        has_rated=Exists(mine.submitted()),
    )
    fields = ("pk", "stage", "free_at", "is_served", "is_taught", "has_rated")
    return {
        pk: refusals.nothing_left(
            free_at=free_at,
            is_for_others=taught if stage in (RaterStage.TRAINING, RaterStage.SCREENING) else served,
            has_rated=rated,
        )
        for pk, stage, free_at, served, taught, rated in told.values_list(*fields)
    }


# Both ask for one row by its index, lane by lane and lease by lease. As joins, a planner that guesses wrongly how much
# a rater has read would read it all for each.


def _with_open_slots() -> QuerySet[Lane]:
    first = QueueEntry.objects.open().filter(lane=OuterRef("pk")).order_by("-key", "-trace")
    lanes = Lane.objects.open().filter(project=OuterRef("project"))
    return lanes.alias(first=Subquery(first.values("trace")[:1])).filter(first__isnull=False)


def _held_by_others() -> QuerySet[Assignment]:
    """What may come back as work that this rater has not met, the first lease to end first. Gold is handed out beside
    work alone: nobody waits for it."""
    met = Assignment.objects.filter(rater=OuterRef(OuterRef("pk")), trace=OuterRef("trace"))
    others = Assignment.objects.open().filter(project=OuterRef("project"), purpose=Purpose.WORK)
    unmet = others.alias(met=Subquery(met.values("pk")[:1])).filter(met=None)
    return unmet.exclude(rater=OuterRef("pk")).order_by("lease_ends_at")
