"""Gaming canaries: frozen, hidden edits of solutions, and the scores of PRMs for them. Owned by `prm.canaries`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models import Project, Trace
from prm.models.prm import PRM


class CanaryEditKind(models.TextChoices):
    """`prm.evaluation.canary_edits.CanaryEdit`, for people."""

    CORRUPT_NUMBER = "corrupt_number", _("a number corrupted")
    SWAP_PROBLEM = "swap_problem", _("another problem")
    DROP_STEP = "drop_step", _("a needed step dropped")
    SPLIT_STEP = "split_step", _("a step split")
    REFORMAT = "reformat", _("reformatted")
    INFLATE = "inflate", _("inflated")
    CONFIDENCE = "confidence", _("words of confidence")


class CanarySet(models.Model):
    """The gaming canaries that were frozen together. Versions are only compared on the same set."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="canary_sets", db_index=False)
    number = models.PositiveIntegerField()
    frozen_at = models.DateTimeField()
    frozen_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="a_canary_set_has_its_number_alone"),
            models.UniqueConstraint(
                fields=["project"], condition=Q(retired_at=None), name="a_project_has_one_canary_set"
            ),
        ]

    def __str__(self) -> str:
        return f"canaries {self.number} of {self.project_id}"


class GamingCanary(models.Model):
    """One text that machines score: an edited solution, or the original of one. It is no trace, so that no queue,
    statistic or dataset contains it. `places` and `original_places` are the compared steps."""

    canary_set = models.ForeignKey(CanarySet, on_delete=models.CASCADE, related_name="canaries", db_index=False)
    number = models.PositiveIntegerField()
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="+")  # the edited one
    edit = models.CharField(max_length=14, choices=CanaryEditKind, blank=True)  # empty for an original
    original = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="edits")
    problem = models.TextField()
    steps = models.JSONField()  # [[kind, is rateable, text], …]
    places = models.JSONField(default=list)
    original_places = models.JSONField(default=list)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["canary_set", "number"], name="a_gaming_canary_has_its_number_alone"),
            models.CheckConstraint(
                condition=Q(edit="", original=None) | ~Q(edit="") & Q(original__isnull=False),
                name="an_edited_canary_has_an_original",
            ),
        ]

    def __str__(self) -> str:
        return f"canary {self.number} of {self.canary_set_id}"


class CanaryScore(models.Model):
    """A PRM's scores of the steps of one canary, null for context."""

    prm = models.ForeignKey(PRM, on_delete=models.CASCADE, related_name="canary_scores", db_index=False)
    canary = models.ForeignKey(GamingCanary, on_delete=models.CASCADE, related_name="scores")
    numbers = models.JSONField()
    scored_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["prm", "canary"], name="a_prm_scores_a_canary_once"),
        ]

    def __str__(self) -> str:
        return f"{self.prm_id} of canary {self.canary_id}"
