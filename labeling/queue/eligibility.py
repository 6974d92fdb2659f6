"""Why a rater gets no trace: one exception for each reason. Each message says what to do next."""

import datetime as dt

from django.utils.formats import time_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from labeling import gates
from labeling.gates import OnboardingGate
from labeling.models import Project, Rater
from labeling.models.project import ProjectState


class QueueRefusal(Exception):
    """The rater gets no trace now. The message can be shown to people."""


class NothingLeft(QueueRefusal):
    """No trace is left for this rater. `free_at` is the end of the first lease of other raters, if they hold any."""

    def __init__(self, code: str, free_at: dt.datetime | None) -> None:
        time = time_format(localtime(free_at), "H:i") if free_at else ""
        super().__init__(_NOTHING_LEFT_MESSAGES[code] % {"time": time})
        self.code, self.free_at = code, free_at


class QueueIsBusy(QueueRefusal):
    """Too many raters claimed the same few traces for too long."""

    def __init__(self) -> None:
        super().__init__(_("Many annotators are requesting the last traces right now. Try again in a few seconds."))


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

    def __init__(self) -> None:
        super().__init__(_("This trace is no longer assigned to you. Continue with the next one."))


_NOTHING_LEFT_MESSAGES = {
    "assigned_to_others": _lazy(
        "The remaining traces are assigned to other annotators until %(time)s. Check back then."
    ),
    "kept_for_others": _lazy("You have labeled every trace that you can. The rest are for other annotators."),
    "all_labeled": _lazy("Every trace has all its labels. New traces appear here when they are added."),
    "empty": _lazy("This queue is empty. New traces appear here when they are added."),
}

_GATE_MESSAGES = {
    OnboardingGate.CONSENT: _lazy("Read the consent text and decide whether you agree before you continue."),
    OnboardingGate.GUIDELINE: _lazy("Read the guideline before you continue. It is new or has changed."),
    OnboardingGate.LESSON: _lazy("Read the feedback on your last training trace before you continue."),
    OnboardingGate.RETRY: _lazy("You did not pass the screening this time. You can start another attempt."),
    OnboardingGate.FAILED: _lazy("You did not pass the screening for this project. Contact a project lead."),
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
        raise RaterPaused(_explain_pause(rater))
    gate = gates.next_gate(rater=rater, project=project)
    if gate == OnboardingGate.FAILED:
        raise ScreeningNotPassed(gate)
    if gate not in gates.GATES_WITH_TRACES:
        raise OnboardingRequired(gate)


def _explain_pause(rater: Rater) -> str:
    """Say who paused the rater, a person or a check, and why."""
    if rater.is_paused_by_check:
        who = _("An automatic check, not a person, paused your work in this project. %(reason)s")
    else:
        who = _("A project lead paused your work in this project: %(reason)s")
    return who % {"reason": rater.paused_reason or _("Ask a project lead when you can continue.")}


def ineligibility_reason(rater: Rater, project: Project) -> str:
    """Return the message of `check_eligibility`, or an empty string if the rater is eligible."""
    try:
        check_eligibility(rater, project)
    except QueueRefusal as refusal:
        return str(refusal)
    return ""
