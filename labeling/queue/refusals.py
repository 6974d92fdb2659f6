"""Why the queue hands out nothing, in words for whoever asked. Each message says what to do."""

import datetime as dt

from django.utils.formats import time_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from labeling import stations
from labeling.models import Project, Rater
from labeling.models.project import ProjectState
from labeling.stations import Station


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


class StationFirst(QueueRefusal):
    """Something comes before the next trace. `station` says what."""

    def __init__(self, station: Station) -> None:
        super().__init__(_FIRST[station])
        self.station = station


class ScreeningNotPassed(StationFirst):
    """The rater may not work here: the screening was not passed."""


# What to do, at each station where no trace is handed out.
_FIRST = {
    Station.CONSENT: _lazy("Before the next trace: read what you agree to in this project, and say whether you do."),
    Station.GUIDELINE: _lazy("Before the next trace: read the guideline. It is new, or has changed."),
    Station.LESSON: _lazy("Before the next trace: look at the answer to the training trace that you have just rated."),
    Station.RETRY: _lazy("The screening was not passed this time. You can begin another attempt."),
    Station.FAILED: _lazy("You did not pass the screening of this project. Ask a project lead what to do."),
}


_NOT_OPEN = {
    ProjectState.PAUSED: _lazy("This project is paused. Ask a project lead when it goes on: your work is kept."),
    ProjectState.CLOSED: _lazy("This project is closed: no more is rated here. What you submitted is kept."),
    ProjectState.ARCHIVED: _lazy("This project is archived: no more is rated here. What you submitted is kept."),
}


class LeaseLost(QueueRefusal):
    """The assignment is no longer in this rater's hands."""


def check(rater: Rater, project: Project) -> None:
    """Raise what keeps the rater from being handed anything in the project."""
    if rater.removed_at is not None:
        raise RaterRemoved(_("You are no longer a member of this project. Ask a project lead if that is a mistake."))
    if project.state != ProjectState.OPEN:
        raise ProjectNotOpen(_NOT_OPEN[ProjectState(project.state)])
    if rater.paused_at is not None:
        raise RaterPaused(
            _("A project lead has paused your work here: %(reason)s") % {"reason": rater.paused_reason}
            if rater.paused_reason
            else _("A project lead has paused your work here. Ask them when you may go on.")
        )
    station = stations.next_of(rater=rater, project=project)
    if station == Station.FAILED:
        raise ScreeningNotPassed(station)
    if station not in stations.WITH_TRACES:
        raise StationFirst(station)


def too_busy() -> QueueIsBusy:
    return QueueIsBusy(_("Many raters are taking the last traces just now. Try again in a moment."))


def why_not(rater: Rater, project: Project) -> str:
    """The same in words for a page; empty where nothing keeps the rater."""
    try:
        check(rater, project)
    except QueueRefusal as refusal:
        return str(refusal)
    return ""


def nothing_left(*, free_at: dt.datetime | None, is_for_others: bool, has_rated: bool) -> NothingLeft:
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


def lease_lost() -> LeaseLost:
    return LeaseLost(_("This trace is no longer in your hands: it went back to the queue. Go on with the next one."))
