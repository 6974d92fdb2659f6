"""Why a rater gets no trace: one exception for each reason. Each message says what to do next."""

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
from labeling.models.rater import RaterStage
from labeling.queue.lanes import GOLD_SOURCES


class QueueRefusal(Exception):
    """The rater gets no trace now. The message can be shown to people."""


class NothingLeft(QueueRefusal):
    """No trace is left for this rater. `free_at` is the end of the first lease of other raters, if they hold any."""

    def __init__(self, message: str, *, code: str, free_at: dt.datetime | None = None) -> None:
        super().__init__(message)
        self.code, self.free_at = code, free_at


class QueueIsBusy(QueueRefusal):
    """Too many raters claimed the same few traces for too long."""


class ProjectNotOpen(QueueRefusal):
    """The project is paused, closed or archived."""


class RaterPaused(QueueRefusal):
    """A lead or the gold monitor has paused the rater."""


class RaterRemoved(QueueRefusal):
    """The rater no longer belongs to the project."""


class OnboardingRequired(QueueRefusal):
    """The rater must pass an onboarding gate first."""

    def __init__(self, gate: OnboardingGate) -> None:
        super().__init__(_GATE_MESSAGES[gate])
        self.gate = gate


class ScreeningNotPassed(OnboardingRequired):
    """The rater failed the screening."""


class AssignmentLeaseLost(QueueRefusal):
    """The assignment is no longer assigned to this rater."""


_GATE_MESSAGES = {
    OnboardingGate.CONSENT: _lazy("Read the consent text and decide whether you agree before you continue."),
    OnboardingGate.GUIDELINE: _lazy("Read the guideline before you continue. It is new or has changed."),
    OnboardingGate.LESSON: _lazy("Read the feedback on your last training trace before you continue."),
    OnboardingGate.RETRY: _lazy("You did not pass the screening this time. You can start another attempt."),
    OnboardingGate.FAILED: _lazy("You did not pass the screening of this project. Contact a project lead."),
}

_NOT_OPEN_MESSAGES = {
    ProjectState.PAUSED: _lazy("This project is paused. Your work is saved. Ask a project lead when it will resume."),
    ProjectState.CLOSED: _lazy("This project is closed. Your submissions are saved."),
    ProjectState.ARCHIVED: _lazy("This project is archived. Your submissions are saved."),
}


def check_eligibility(rater: Rater, project: Project) -> None:
    """Raise the reason why the rater gets no trace of the project."""
    if rater.removed_at is not None:
        raise RaterRemoved(
            _("You are no longer a member of this project. Contact a project lead if this is a mistake.")
        )
    if project.state != ProjectState.OPEN:
        raise ProjectNotOpen(_NOT_OPEN_MESSAGES[ProjectState(project.state)])
    if rater.paused_at is not None:
        raise RaterPaused(
            _("Your work in this project is paused: %(reason)s") % {"reason": rater.paused_reason}
            if rater.paused_reason
            else _("Your work in this project is paused. Ask a project lead when you can continue.")
        )
    gate = gates.next_gate(rater=rater, project=project)
    if gate == OnboardingGate.FAILED:
        raise ScreeningNotPassed(gate)
    if gate not in gates.GATES_WITH_TRACES:
        raise OnboardingRequired(gate)


def ineligibility_reason(rater: Rater, project: Project) -> str:
    """Return the message of `check_eligibility`, or an empty string if the rater is eligible."""
    try:
        check_eligibility(rater, project)
    except QueueRefusal as refusal:
        return str(refusal)
    return ""


def busy_error() -> QueueIsBusy:
    return QueueIsBusy(_("Many annotators are taking the last traces at the moment. Try again in a few seconds."))


def lease_lost_error() -> AssignmentLeaseLost:
    return AssignmentLeaseLost(_("This trace is no longer assigned to you. Continue with the next one."))


def nothing_left_error(*, free_at: dt.datetime | None, is_for_others: bool, has_rated: bool) -> NothingLeft:
    """`free_at`: the end of the first lease of other raters. `is_for_others`: the rater has had all open traces."""
    if free_at is not None:
        code, message = (
            "assigned_to_others",
            _("The remaining traces are assigned to other annotators until %(time)s. Check again then.")
            % {"time": time_format(localtime(free_at), "H:i")},
        )
    elif is_for_others:
        code, message = (
            "kept_for_others",
            _("You have labeled every trace in this queue. The rest is for other annotators."),
        )
    elif has_rated:
        code, message = (
            "all_labeled",
            _("Every trace has all of its labels. New traces appear here when they are added."),
        )
    else:
        code, message = "empty", _("This queue is empty. New traces appear here when they are added.")
    return NothingLeft(message, code=code, free_at=free_at)


def explain_nothing_left(raters: Collection[int]) -> dict[int, NothingLeft]:
    """Return for each of these raters why no trace is left, in one query.

    It reads open slots and open leases by index, and stops at the first row that answers the question.
    """
    own = Assignment.objects.filter(rater=OuterRef("pk"))
    lanes = _lanes_with_slots()
    rows = Rater.objects.filter(pk__in=raters).annotate(
        free_at=Subquery(_assigned_to_others().values("lease_ends_at")[:1]),
        has_work=Exists(lanes.exclude(arm__in=GOLD_SOURCES)),
        has_set=Exists(lanes.filter(arm=OuterRef("stage"))),
        has_rated=Exists(own.submitted()),
    )
    return {
        pk: nothing_left_error(
            free_at=free_at,
            is_for_others=has_set if stage in (RaterStage.TRAINING, RaterStage.SCREENING) else has_work,
            has_rated=has_rated,
        )
        for pk, stage, free_at, has_work, has_set, has_rated in rows.values_list(
            "pk", "stage", "free_at", "has_work", "has_set", "has_rated"
        )
    }


# The next two ask for one row by its index, for each lane and each lease. With joins, a planner that misjudges how much
# a rater has labeled would read all of it for each.


def _lanes_with_slots() -> QuerySet[Lane]:
    first = QueueEntry.objects.open().filter(lane=OuterRef("pk")).order_by("-key", "-trace")
    lanes = Lane.objects.open().filter(project=OuterRef("project"))
    return lanes.alias(first=Subquery(first.values("trace")[:1])).filter(first__isnull=False)


def _assigned_to_others() -> QuerySet[Assignment]:
    """Return work that may come back and that this rater has not had, the first lease to end first. No one waits for
    gold, which is served only beside work."""
    own = Assignment.objects.filter(rater=OuterRef(OuterRef("pk")), trace=OuterRef("trace"))
    others = Assignment.objects.open().filter(project=OuterRef("project"), purpose=AssignmentPurpose.WORK)
    new = others.alias(own=Subquery(own.values("pk")[:1])).filter(own=None)
    return new.exclude(rater=OuterRef("pk")).order_by("lease_ends_at")
