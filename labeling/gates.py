"""Which station comes next for a rater on the way into a project. Pure: computed from the two rows.

`queue/claim.sql` refuses raters by the same rules; tests/labeling/queue/test_eligibility.py proves that both agree."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from labeling.models import Project, Rater
from labeling.models.rater import RaterStage


class OnboardingGate(models.TextChoices):
    """What is to be done next. In the order in which raters meet them."""

    CONSENT = "consent", _("agree")
    GUIDELINE = "guideline", _("read the guideline")
    TRAINING = "training", _("training")
    LESSON = "lesson", _("read the answer")
    SCREENING = "screening", _("screening")
    RETRY = "retry", _("try the screening again")
    FAILED = "failed", _("not passed")
    WORK = "work", _("work")


# At these a trace is handed out; at any other something comes first, or nothing comes any more.
GATES_WITH_TRACES = frozenset({OnboardingGate.TRAINING, OnboardingGate.SCREENING, OnboardingGate.WORK})

_GATE_OF_STAGE = {
    RaterStage.TRAINING: OnboardingGate.TRAINING,
    RaterStage.LESSON: OnboardingGate.LESSON,
    RaterStage.SCREENING: OnboardingGate.SCREENING,
    RaterStage.RETRY: OnboardingGate.RETRY,
    RaterStage.FAILED: OnboardingGate.FAILED,
    RaterStage.WORKING: OnboardingGate.WORK,
}


def next_gate(*, rater: Rater, project: Project) -> OnboardingGate:
    """Whoever has failed is asked to read nothing more; everybody else reads what has changed before the next trace."""
    if rater.stage == RaterStage.FAILED:
        return OnboardingGate.FAILED
    if project.consent_text_id not in (None, rater.agreed_text_id):
        return OnboardingGate.CONSENT
    if project.guideline_id not in (None, rater.read_guideline_id):
        return OnboardingGate.GUIDELINE
    return gate_of_stage(rater)


def gate_of_stage(rater: Rater) -> OnboardingGate:
    """How far somebody has come, whatever there is to read anew before they go on there."""
    return _GATE_OF_STAGE[RaterStage(rater.stage)]
