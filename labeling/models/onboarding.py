"""The onboarding of raters: consents, guidelines read, training feedback, screening results. Owned by
`labeling.onboarding`."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from labeling.models.assignment import Assignment
from labeling.models.project import ConsentText, Guideline
from labeling.models.rater import Rater


class Consent(models.Model):
    """A rater agreed to one version of the project's text."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="consents", db_index=False)
    text = models.ForeignKey(ConsentText, on_delete=models.PROTECT, related_name="consents")
    given_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater", "text"], name="a_rater_agrees_to_a_text_once"),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id} agreed to {self.text_id}"


class GuidelineAcknowledgment(models.Model):
    """A rater confirmed having read one version of the guideline."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="readings", db_index=False)
    guideline = models.ForeignKey(Guideline, on_delete=models.PROTECT, related_name="readings")
    read_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater", "guideline"], name="a_rater_reads_a_guideline_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id} read {self.guideline_id}"


class TrainingFeedback(models.Model):
    """The feedback on one training trace, and whether its rater has read it."""

    assignment = models.OneToOneField(Assignment, on_delete=models.PROTECT, related_name="lesson")
    given_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(read_at=None) | Q(read_at__gte=F("given_at")), name="a_lesson_is_read_after_it_was_given"
            ),
        ]

    def __str__(self) -> str:
        return f"feedback on {self.assignment_id}"


class ScreeningResult(models.Model):
    """The result of one screening attempt, with the pass mark at that time."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="screening_results", db_index=False)
    attempt = models.PositiveSmallIntegerField()
    n_traces = models.PositiveIntegerField()
    n_right = models.PositiveIntegerField()
    n_needed = models.PositiveIntegerField()
    has_passed = models.BooleanField()
    decided_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater", "attempt"], name="an_attempt_at_the_screening_ends_once"),
            models.CheckConstraint(
                condition=Q(n_right__lte=F("n_traces"), n_needed__lte=F("n_traces"), attempt__gte=1),
                name="a_screening_counts_its_own_traces",
            ),
            models.CheckConstraint(
                condition=Q(has_passed=True, n_right__gte=F("n_needed"))
                | Q(has_passed=False, n_right__lt=F("n_needed")),
                name="a_screening_is_passed_by_its_mark",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.rater_id}"
