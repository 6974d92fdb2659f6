"""A rater's onboarding: its steps and their progress. Read-only."""

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling import gates, onboarding
from labeling.gates import OnboardingGate
from labeling.models import Project, Rater
from labeling.models.assignment import AssignmentPurpose
from labeling.onboarding import SetProgress

_STEP_OF_GATE = {
    OnboardingGate.CONSENT: "reading",
    OnboardingGate.GUIDELINE: "reading",
    OnboardingGate.TRAINING: "training",
    OnboardingGate.LESSON: "training",
    OnboardingGate.SCREENING: "screening",
    OnboardingGate.RETRY: "screening",
    OnboardingGate.FAILED: "screening",
    OnboardingGate.WORK: "work",
}


@dataclass(frozen=True)
class OnboardingStep:
    """One line of the list in the sidebar."""

    key: str
    title: str
    hint: str
    state: str  # done, here or ahead


@dataclass(frozen=True)
class OnboardingPath:
    gate: OnboardingGate
    training: SetProgress
    screening: SetProgress
    attempts_left: int  # of the screening, the current one included
    steps: list[OnboardingStep]


def load_onboarding_path(rater: Rater, project: Project) -> OnboardingPath:
    gate = gates.next_gate(rater=rater, project=project)
    training = onboarding.load_set_progress(rater=rater, purpose=AssignmentPurpose.TRAINING)
    screening = onboarding.load_set_progress(rater=rater, purpose=AssignmentPurpose.SCREENING)
    attempts_left = _screening_attempts_left(gate, rater, project)
    lines = [
        ("reading", _reading_title(project), ""),
        ("training", _("Training"), _training_hint(training, gate)),
        ("screening", _("Screening"), _screening_hint(screening, attempts_left, project)),
        ("work", _("Work"), ""),
    ]
    exists = {
        "reading": bool(project.consent_text_id or project.guideline_id),
        "training": bool(training.total),
        "screening": bool(screening.total),
        "work": True,
    }
    keys = [key for key, _title, _hint in lines]
    here = keys.index(_STEP_OF_GATE[gate])
    reached = max(here, keys.index(_STEP_OF_GATE[gates.gate_of_stage(rater)]))  # a new guideline resets nothing else
    steps = [
        OnboardingStep(key, title, hint, "here" if number == here else "done" if number < reached else "ahead")
        for number, (key, title, hint) in enumerate(lines)
        if exists[key]
    ]
    return OnboardingPath(gate, training, screening, attempts_left, steps)


def _reading_title(project: Project) -> str:
    if project.guideline is None:
        return _("Consent")
    version = {"version": project.guideline.version}
    if project.consent_text_id is None:
        return _("Guideline, version %(version)d") % version
    return _("Consent and guideline, version %(version)d") % version


def _training_hint(progress: SetProgress, gate: OnboardingGate) -> str:
    if gate in (OnboardingGate.TRAINING, OnboardingGate.LESSON):
        number = progress.done if gate == OnboardingGate.LESSON else progress.number
        return _("trace %(number)d of %(total)d. Answers are explained; results don't count.") % {
            "number": number,
            "total": progress.total,
        }
    return ngettext(
        "%(total)d trace with an explained answer. The result doesn't count.",
        "%(total)d traces with explained answers. Results don't count.",
        progress.total,
    ) % {"total": progress.total}


def _screening_attempts_left(gate: OnboardingGate, rater: Rater, project: Project) -> int:
    if gate == OnboardingGate.FAILED:
        return 0
    is_attempt_over = gate == OnboardingGate.RETRY
    return max(0, project.screening_attempts - rater.screening_attempt + (not is_attempt_over))


def _screening_hint(progress: SetProgress, attempts_left: int, project: Project) -> str:
    hints = [
        ngettext("%(total)d trace without explanations.", "%(total)d traces without explanations.", progress.total)
        % {"total": progress.total},
        _("You need at least %(mark)d correct.")
        % {"mark": onboarding.pass_mark(progress.total, project.screening_pass_share)},
    ]
    if attempts_left:
        hints.append(
            ngettext("You have %(left)d attempt.", "You have %(left)d attempts.", attempts_left)
            % {"left": attempts_left}
        )
    return " ".join(hints)
