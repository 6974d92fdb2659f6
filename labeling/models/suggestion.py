"""Suggestions: labels of a machine that some raters see, and which rater saw which.

`labeling.projects.suggestions` owns SuggestionPlan, `labeling.queue.exposures` draws Exposure, and
`labeling.assignments.revealed_labels` writes RevealedLabel and counts the changes after them.
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from labeling.models.assignment import Assignment
from labeling.models.project import Project
from labeling.models.rater import Rater
from labeling.models.trace import Step


class ExposureArm(models.TextChoices):
    """When a rater sees the labels of the machine on one trace."""

    BLIND = "blind", _("never")
    REVEAL = "reveal", _("after the first answer")
    SUGGEST = "suggest", _("before the answer")


class SuggestionEnd(models.TextChoices):
    LEAD = "lead", _("turned off by a lead")
    CHANGED = "changed", _("replaced by other settings")
    HARM = "harm", _("harm established")


class SuggestionPlanQuerySet(models.QuerySet["SuggestionPlan"]):
    def active(self) -> "SuggestionPlanQuerySet":
        return self.filter(ended_at=None)


class SuggestionPlan(models.Model):
    """One setting of a project's suggestions: the machine, the shares of the arms, and the seed of the draws. It is
    never changed: other settings are another plan."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="suggestion_plans", db_index=False)
    machine = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="+", db_index=False)
    reveal_share = models.FloatField()
    suggest_share = models.FloatField()  # the rest labels blind
    seed = models.CharField(max_length=32)
    began_at = models.DateTimeField()
    began_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_because = models.CharField(max_length=8, choices=SuggestionEnd, blank=True)

    objects = SuggestionPlanQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project"], condition=Q(ended_at=None), name="a_project_has_one_plan_of_suggestions"
            ),
            models.CheckConstraint(
                condition=Q(reveal_share__gte=0, suggest_share__gte=0)
                & Q(reveal_share__lte=0.9 - F("suggest_share") + 1e-9),
                name="some_raters_label_blind",
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, ended_because="") | Q(ended_at__isnull=False) & ~Q(ended_because=""),
                name="a_plan_of_suggestions_ends_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"suggestions {self.pk} of {self.project_id}"

    @property
    def subject(self) -> str:
        return f"suggestions:{self.pk}"

    @property
    def shares(self) -> dict[ExposureArm, float]:
        """Return the share of each arm."""
        blind = 1 - self.reveal_share - self.suggest_share
        return {
            ExposureArm.SUGGEST: self.suggest_share,
            ExposureArm.REVEAL: self.reveal_share,
            ExposureArm.BLIND: blind,
        }


class Exposure(models.Model):
    """The arm that was drawn for one rater and one trace. All arms have rows, so that they can be compared; a trace
    that the machine has not labeled has none."""

    assignment = models.OneToOneField(Assignment, primary_key=True, on_delete=models.CASCADE, related_name="exposure")
    plan = models.ForeignKey(SuggestionPlan, on_delete=models.PROTECT, related_name="exposures")
    arm = models.CharField(max_length=8, choices=ExposureArm)
    probability = models.FloatField()  # of this arm
    # The assignment of the machine, and its revision, whose labels are shown.
    shown = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="+")
    shown_revision = models.PositiveSmallIntegerField()
    drawn_at = models.DateTimeField()
    # In the arm `reveal`: the steps whose rating differs from the first answer. Null until the submission.
    n_changed = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(probability__gt=0, probability__lte=1), name="an_arm_is_drawn_with_a_probability"
            ),
            models.CheckConstraint(
                condition=Q(n_changed=None) | Q(arm="reveal"), name="only_revealed_labels_change_answers"
            ),
        ]

    def __str__(self) -> str:
        return f"exposure of {self.assignment_id}"


class RevealedLabel(models.Model):
    """A label that a rater saw after answering: the first answer, and the label."""

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="revealed_labels", db_index=False)
    step = models.ForeignKey(Step, on_delete=models.CASCADE, related_name="+")
    first_rating = models.SmallIntegerField()
    shown_rating = models.SmallIntegerField()
    revealed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["assignment", "step"], name="a_label_is_revealed_once"),
            models.CheckConstraint(
                condition=Q(first_rating__in=[-1, 0, 1], shown_rating__in=[-1, 0, 1]),
                name="a_revealed_label_is_a_rating",
            ),
        ]

    def __str__(self) -> str:
        return f"revealed label {self.pk}"
