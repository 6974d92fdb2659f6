"""The onboarding gates of a rater: what must be done before the next trace. Pure, computed from the rater and project.

`queue/claim.sql` applies the same rules; tests/labeling/queue/test_eligibility.py proves that both agree."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from labeling.models import Project, Rater
from labeling.models.rater import RaterStage


class OnboardingGate(models.TextChoices):
    """The gates in the order in which raters reach them."""

    CONSENT = "consent", _("consent")
    GUIDELINE = "guideline", _("guideline")
    TRAINING = "training", _("training")
    LESSON = "lesson", _("training feedback")
    SCREENING = "screening", _("screening")
    RETRY = "retry", _("another screening attempt")
    FAILED = "failed", _("screening not passed")
    WORK = "work", _("work")


# Raters get traces only at these gates.
GATES_WITH_TRACES = frozenset({OnboardingGate.TRAINING, OnboardingGate.SCREENING, OnboardingGate.WORK})


def next_gate(*, rater: Rater, project: Project) -> OnboardingGate:
    """Return the next gate. Raters who failed the screening need not read new versions; all others must."""
    if rater.stage == RaterStage.FAILED:
        return OnboardingGate.FAILED
    if project.consent_text_id not in (None, rater.agreed_text_id):
        return OnboardingGate.CONSENT
    if project.guideline_id not in (None, rater.read_guideline_id):
        return OnboardingGate.GUIDELINE
    return gate_of_stage(rater)


def gate_of_stage(rater: Rater) -> OnboardingGate:
    """Return how far a rater has come, regardless of new versions of the guideline and the consent text."""
    return OnboardingGate.WORK if rater.stage == RaterStage.WORKING else OnboardingGate(rater.stage)
