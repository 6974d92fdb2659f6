"""A rater's onboarding: its steps and their progress, and the completion link or code at the end. Read-only."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling import gates, gold_sets
from labeling.gates import OnboardingGate
from labeling.gold_sets import SetProgress
from labeling.models import Assignment, Project, Rater
from labeling.models.assignment import AssignmentPurpose, FinishReason
from labeling.models.rater import RaterStage

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
    training = gold_sets.load_set_progress(rater=rater, purpose=AssignmentPurpose.TRAINING)
    screening = gold_sets.load_set_progress(rater=rater, purpose=AssignmentPurpose.SCREENING)
    attempts_left = _screening_attempts_left(gate, rater, project)
    lines = [
        ("reading", _reading_title(project), "", project.consent_text_id or project.guideline_id),
        ("training", _("Training"), _training_hint(training, gate), training.total),
        ("screening", _("Screening"), _screening_hint(screening, attempts_left, project), screening.total),
        ("work", _("Work"), "", True),
    ]
    keys = [key for key, *_rest in lines]
    here = keys.index(_STEP_OF_GATE[gate])
    reached = max(here, keys.index(_STEP_OF_GATE[gates.gate_of_stage(rater)]))  # a new guideline resets nothing else
    steps = [
        OnboardingStep(key, title, hint, "here" if number == here else "done" if number < reached else "ahead")
        for number, (key, title, hint, exists) in enumerate(lines)
        if exists
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
        return _("trace %(number)d of %(total)d. Answers are explained; results don’t count.") % {
            "number": number,
            "total": progress.total,
        }
    return ngettext(
        "%(total)d trace with an explained answer. The result doesn’t count.",
        "%(total)d traces with explained answers. Results don’t count.",
        progress.total,
    ) % {"total": progress.total}


def _screening_attempts_left(gate: OnboardingGate, rater: Rater, project: Project) -> int:
    if gate == OnboardingGate.FAILED:
        return 0
    current = int(gate != OnboardingGate.RETRY)
    return max(current, project.screening_attempts - rater.screening_attempt + current)


def _screening_hint(progress: SetProgress, attempts_left: int, project: Project) -> str:
    hints = [
        ngettext("%(total)d trace without explanations.", "%(total)d traces without explanations.", progress.total)
        % {"total": progress.total},
        _("To pass, get at least %(mark)d right.")
        % {"mark": gold_sets.pass_mark(progress.total, project.screening_pass_share)},
    ]
    if attempts_left:
        hints.append(
            ngettext("You have %(left)d attempt left.", "You have %(left)d attempts left.", attempts_left)
            % {"left": attempts_left}
        )
    return " ".join(hints)


class Outcome(StrEnum):
    """How a study ended for an annotator. Each outcome has its own code, by which the platform pays."""

    COMPLETED = "completion"
    SCREENED_OUT = "screened_out"
    NO_CONSENT = "no_consent"
    FAILED_CHECKS = "failed_checks"


class CrowdCompletion(NamedTuple):
    """A link, a code, or both; never neither."""

    outcome: Outcome
    url: str
    code: str


def find_completion(rater: Rater) -> CrowdCompletion | None:
    """Return the completion of a study that has ended for this rater."""
    outcome = _find_outcome(rater)
    return load_completion(rater.project, outcome) if outcome else None


def load_completion(project: Project, outcome: Outcome) -> CrowdCompletion | None:
    completion = CrowdCompletion(outcome, getattr(project, f"{outcome}_url"), getattr(project, f"{outcome}_code"))
    return completion if completion.url or completion.code else None


def _find_outcome(rater: Rater) -> Outcome | None:
    if rater.stage == RaterStage.FAILED:
        return Outcome.SCREENED_OUT
    done = submitted_work(rater).exclude(finish_reason=FinishReason.GIVE_UP).count()
    if done >= rater.project.completion_traces:
        return Outcome.COMPLETED
    return Outcome.FAILED_CHECKS if rater.is_paused_by_check else None


def submitted_work(rater: Rater) -> QuerySet[Assignment]:
    """Return submitted work, including hidden gold but not training and screening."""
    purposes = (AssignmentPurpose.WORK, AssignmentPurpose.GOLD)
    return Assignment.objects.submitted().filter(rater=rater, purpose__in=purposes)
