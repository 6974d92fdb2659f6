"""The way into a project as its rater sees it: which stations there are, and where they stand. Reads only."""

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
    """One line of the list beside the page."""

    key: str
    title: str
    says: str
    state: str  # done, here, ahead


@dataclass(frozen=True)
class OnboardingPath:
    station: OnboardingGate
    training: SetProgress
    screening: SetProgress
    steps: list[OnboardingStep]

    @property
    def is_at_work(self) -> bool:
        return self.station == OnboardingGate.WORK


def load_onboarding_path(rater: Rater, project: Project) -> OnboardingPath:
    station = gates.next_gate(rater=rater, project=project)
    training = onboarding.load_set_progress(rater=rater, purpose=AssignmentPurpose.TRAINING)
    screening = onboarding.load_set_progress(rater=rater, purpose=AssignmentPurpose.SCREENING)
    found = [
        ("reading", _reading_title(project), ""),
        ("training", _("Training"), _training_hint(training, station)),
        ("screening", _("Screening"), _screening_hint(screening, station, rater, project)),
        ("work", _("Work"), ""),
    ]
    exists = {
        "reading": bool(project.consent_text_id or project.guideline_id),
        "training": bool(training.total),
        "screening": bool(screening.total),
        "work": True,
    }
    keys = [key for key, _title, _says in found]
    here = keys.index(_STEP_OF_GATE[station])
    behind = max(here, keys.index(_STEP_OF_GATE[gates.gate_of_stage(rater)]))  # a new guideline takes nothing back
    steps = [
        OnboardingStep(key, title, says, "here" if number == here else "done" if number < behind else "ahead")
        for number, (key, title, says) in enumerate(found)
        if exists[key]
    ]
    return OnboardingPath(station, training, screening, steps)


def _reading_title(project: Project) -> str:
    if project.guideline is None:
        return _("Consent")
    told = {"version": project.guideline.version}
    if project.consent_text_id is None:
        return _("Guideline, version %(version)d") % told
    return _("Consent and guideline, version %(version)d") % told


def _training_hint(progress: SetProgress, station: OnboardingGate) -> str:
    if station in (OnboardingGate.TRAINING, OnboardingGate.LESSON):
        done = progress.done if station == OnboardingGate.LESSON else progress.number
        told = {"number": done, "total": progress.total}
        return _("trace %(number)d of %(total)d. Explained after each trace; does not count.") % told
    return ngettext(
        "%(total)d trace, explained after each. Does not count.",
        "%(total)d traces, explained after each. Do not count.",
        progress.total,
    ) % {"total": progress.total}


def _screening_hint(progress: SetProgress, station: OnboardingGate, rater: Rater, project: Project) -> str:
    traces = ngettext(
        "%(total)d trace without explanations.", "%(total)d traces without explanations.", progress.total
    ) % {"total": progress.total}
    mark = _("Passed with %(mark)d or more right.") % {
        "mark": onboarding.pass_mark(progress.total, project.screening_pass_share)
    }
    is_over = station in (OnboardingGate.RETRY, OnboardingGate.FAILED)  # the attempt that counts was the last one
    left = project.screening_attempts - rater.screening_attempt + (not is_over)
    attempts = ngettext("You have %(left)d attempt.", "You have %(left)d attempts.", left) % {"left": left}
    return f"{traces} {mark} {attempts}" if left > 0 and station != OnboardingGate.FAILED else f"{traces} {mark}"
