"""What a rater sees of a trace: its reasoning, its actions, or both, drawn at random for each rater and trace.

`labeling.projects.visibility` owns VisibilityPlan. `claim.sql` in `labeling.queue` draws VisibilityDraw.
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from labeling.models.assignment import Assignment
from labeling.models.project import Project


class VisibilityCondition(models.TextChoices):
    """What is shown of a trace. Steps of the other kind are hidden."""

    REASONING = "reasoning", _("reasoning only")
    ACTIONS = "actions", _("actions only")
    BOTH = "both", _("reasoning and actions")


class VisibilityPlanQuerySet(models.QuerySet["VisibilityPlan"]):
    def active(self) -> "VisibilityPlanQuerySet":
        return self.filter(ended_at=None)


class VisibilityPlan(models.Model):
    """One setting of a project's conditions: their shares, and the seed of the draws. It is never changed: other
    settings are another plan."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="visibility_plans", db_index=False)
    reasoning_share = models.FloatField()
    actions_share = models.FloatField()  # the rest sees both
    seed = models.CharField(max_length=32)
    began_at = models.DateTimeField()
    began_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = VisibilityPlanQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project"], condition=Q(ended_at=None), name="a_project_has_one_plan_of_visibility"
            ),
            models.CheckConstraint(
                condition=Q(reasoning_share__gte=0, actions_share__gte=0)
                & Q(reasoning_share__lte=0.9 - F("actions_share") + 1e-9),
                name="some_raters_see_everything",
            ),
        ]

    def __str__(self) -> str:
        return f"visibility {self.pk} of {self.project_id}"

    @property
    def subject(self) -> str:
        return f"visibility:{self.pk}"

    @property
    def both_share(self) -> float:
        return 1 - self.reasoning_share - self.actions_share


class VisibilityDraw(models.Model):
    """The condition that was drawn for one rater and one trace, with its probability. Without a row, everything is
    shown."""

    assignment = models.OneToOneField(Assignment, primary_key=True, on_delete=models.CASCADE, related_name="visibility")
    plan = models.ForeignKey(VisibilityPlan, on_delete=models.PROTECT, related_name="draws")
    condition = models.CharField(max_length=9, choices=VisibilityCondition)
    probability = models.FloatField()
    drawn_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(probability__gt=0, probability__lte=1), name="a_condition_is_drawn_with_a_probability"
            ),
            models.CheckConstraint(
                condition=Q(condition__in=["reasoning", "actions", "both"]), name="a_condition_is_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.condition} for {self.assignment_id}"
