"""Why the queue hands out nothing, in words for whoever asked. Each message says what to do."""

import datetime as dt
from collections.abc import Collection

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils.formats import time_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from labeling import gates
from labeling.gates import OnboardingGate
from labeling.models import Assignment, Lane, Project, QueueEntry, Rater
from labeling.models.assignment import AssignmentPurpose
from labeling.models.project import ProjectState
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterStage


class QueueRefusal(Exception):
    """The queue gives nothing to this rater now. `str()` of it may be shown to people."""


class NothingLeft(QueueRefusal):
    """There is nothing that this rater may take. `free_at` says when the first lease of others ends at the latest."""

    def __init__(self, message: str, *, free_at: dt.datetime | None = None) -> None:
        super().__init__(message)
        self.free_at = free_at


class QueueIsBusy(QueueRefusal):
    """Too many were after the same few traces for as long as one tries."""


class ProjectNotOpen(QueueRefusal):
    """The project is paused, closed or archived."""


class RaterPaused(QueueRefusal):
    """A lead has paused the rater."""


class RaterRemoved(QueueRefusal):
    """The rater no longer belongs to the project."""


class OnboardingRequired(QueueRefusal):
    """Something comes before the next trace. `station` says what."""

    def __init__(self, station: OnboardingGate) -> None:
        super().__init__(_GATE_MESSAGES[station])
        self.station = station


class ScreeningNotPassed(OnboardingRequired):
    """The rater may not work here: the screening was not passed."""


# What to do, at each station where no trace is handed out.
_GATE_MESSAGES = {
    OnboardingGate.CONSENT: _lazy(
        "Before the next trace: read what you agree to in this project, and say whether you do."
    ),
    OnboardingGate.GUIDELINE: _lazy("Before the next trace: read the guideline. It is new, or has changed."),
    OnboardingGate.LESSON: _lazy(
        "Before the next trace: look at the answer to the training trace that you have just rated."
    ),
    OnboardingGate.RETRY: _lazy("The screening was not passed this time. You can begin another attempt."),
    OnboardingGate.FAILED: _lazy("You did not pass the screening of this project. Ask a project lead what to do."),
}


_NOT_OPEN_MESSAGES = {
    ProjectState.PAUSED: _lazy("This project is paused. Ask a project lead when it goes on: your work is kept."),
    ProjectState.CLOSED: _lazy("This project is closed: no more is rated here. What you submitted is kept."),
    ProjectState.ARCHIVED: _lazy("This project is archived: no more is rated here. What you submitted is kept."),
}


class AssignmentLeaseLost(QueueRefusal):
    """The assignment is no longer in this rater's hands."""


def check_eligibility(rater: Rater, project: Project) -> None:
    """Raise what keeps the rater from being handed anything in the project."""
    if rater.removed_at is not None:
        raise RaterRemoved(_("You are no longer a member of this project. Ask a project lead if that is a mistake."))
    if project.state != ProjectState.OPEN:
        raise ProjectNotOpen(_NOT_OPEN_MESSAGES[ProjectState(project.state)])
    if rater.paused_at is not None:
        raise RaterPaused(
            _("A project lead has paused your work here: %(reason)s") % {"reason": rater.paused_reason}
            if rater.paused_reason
            else _("A project lead has paused your work here. Ask them when you may go on.")
        )
    station = gates.next_gate(rater=rater, project=project)
    if station == OnboardingGate.FAILED:
        raise ScreeningNotPassed(station)
    if station not in gates.GATES_WITH_TRACES:
        raise OnboardingRequired(station)


def busy_error() -> QueueIsBusy:
    return QueueIsBusy(_("Many raters are taking the last traces just now. Try again in a moment."))


def ineligibility_reason(rater: Rater, project: Project) -> str:
    """The same in words for a page; empty where nothing keeps the rater."""
    try:
        check_eligibility(rater, project)
    except QueueRefusal as refusal:
        return str(refusal)
    return ""


def nothing_left_error(*, free_at: dt.datetime | None, is_for_others: bool, has_rated: bool) -> NothingLeft:
    """`free_at`: when the first lease of others ends. `is_for_others`: the rater has met all that is open."""
    if free_at is not None:
        told = {"time": time_format(localtime(free_at), "H:i")}
        says = _("Other raters hold the rest until %(time)s. Come back then, in case one comes free.") % told
    elif is_for_others:
        says = _("You have done everything that is queued here. The rest waits for other raters.")
    elif has_rated:
        says = _("Everything here is read as often as was asked for. New traces appear here when they are added.")
    else:
        says = _("Nothing is queued in this project. New traces appear here when they are added.")
    return NothingLeft(says, free_at=free_at)


def lease_lost_error() -> AssignmentLeaseLost:
    return AssignmentLeaseLost(
        _("This trace is no longer in your hands: it went back to the queue. Go on with the next one.")
    )


# Why nothing is left for somebody. Reads alone: one query for however many raters are asked about.


_NOT_WORK = (
    SamplingSource.TRAINING,
    SamplingSource.SCREENING,
    SamplingSource.GOLD,
)  # lanes that are no work of their own


def explain_nothing_left(raters: Collection[int]) -> dict[int, NothingLeft]:
    """For raters to whom nothing can be handed now, by rater. It reads the open slots and the open leases of their
    projects, by their indexes, and stops at the first that tells."""
    mine = Assignment.objects.filter(rater=OuterRef("pk"))
    lanes = _with_open_slots()
    told = Rater.objects.filter(pk__in=raters).annotate(
        free_at=Subquery(_held_by_others().values("lease_ends_at")[:1]),
        is_served=Exists(lanes.exclude(arm__in=_NOT_WORK)),
        is_taught=Exists(lanes.filter(arm=OuterRef("stage"))),
        has_rated=Exists(mine.submitted()),
    )
    fields = ("pk", "stage", "free_at", "is_served", "is_taught", "has_rated")
    return {
        pk: nothing_left_error(
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
    others = Assignment.objects.open().filter(project=OuterRef("project"), purpose=AssignmentPurpose.WORK)
    unmet = others.alias(met=Subquery(met.values("pk")[:1])).filter(met=None)
    return unmet.exclude(rater=OuterRef("pk")).order_by("lease_ends_at")
