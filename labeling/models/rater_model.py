"""The rater model of a project: first-error Dawid–Skene. Owned by `labeling.quality`."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from labeling.models.project import Project


class FitBasis(models.TextChoices):
    """Whose submissions a model was fitted to."""

    BLIND = "blind", _("people who saw no score")
    ASSISTED = "assisted", _("also machines, and people who saw scores")


class RaterModelFit(models.Model):
    """The error rates of the raters of a project, fitted to all submissions up to then and validated on hidden gold.

    Never changed: a consensus refers to the fit of its probability. Blind and assisted submissions have separate fits.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="fits", db_index=False)
    basis = models.CharField(max_length=8, choices=FitBasis, default=FitBasis.BLIND)
    number = models.PositiveIntegerField()
    made_at = models.DateTimeField()
    n_traces = models.PositiveIntegerField()
    n_readings = models.PositiveIntegerField()
    # [false alarm, detection, late detection] of each rater by id, and of all others under "others". A negative id is a
    # rater who saw scores: blind and assisted, one person counts as two raters.
    rates = models.JSONField()
    hazards = models.JSONField()  # by domain and position: {"domains": {name: […]}, "all": […]}

    n_gold = models.PositiveIntegerField()  # hidden gold traces that enough raters labeled
    temperature = models.FloatField(default=1.0)
    temperature_reason = models.CharField(max_length=100, blank=True)  # why it is 1
    # The mean gap between probability and the share that is right, on gold, before and after the temperature.
    gap_before = models.FloatField(null=True, blank=True)
    gap_after = models.FloatField(null=True, blank=True)
    # Accept from this probability on; how much gold had it, and a lower bound of the share that was right.
    threshold = models.FloatField(null=True, blank=True)
    threshold_reason = models.CharField(max_length=100, blank=True)  # why it is null
    n_accepted = models.PositiveIntegerField(default=0)
    lower_bound = models.FloatField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "basis", "number"], name="a_fit_has_one_number_in_its_project"),
        ]

    def __str__(self) -> str:
        return f"fit {self.number} of {self.project_id}"
