"""What first-error Dawid–Skene has learned of a project's raters. Owned by `labeling.quality`."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from labeling.models.project import Project


class FitBasis(models.TextChoices):
    """Whose readings a fit was learned from."""

    BLIND = "blind", _("people who saw no score")
    ASSISTED = "assisted", _("machines, and people who saw scores, besides")


class RaterModelFit(models.Model):
    """How raters of a project err, by all readings up to then, and how far that was right on hidden gold. Never
    changed: a consensus names the fit that its probability is of. What people alone said and what machines said with
    them is learned apart, and never mixed."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="fits", db_index=False)
    basis = models.CharField(max_length=8, choices=FitBasis, default=FitBasis.BLIND)
    number = models.PositiveIntegerField()
    made_at = models.DateTimeField()
    n_traces = models.PositiveIntegerField()
    n_readings = models.PositiveIntegerField()
    # [false alarm, detection, late detection] of each rater by id, and of any other under "others". Of somebody who
    # saw scores, by minus their id: blind and assisted they are two raters.
    rates = models.JSONField()
    hazards = models.JSONField()  # by domain and position: {"domains": {name: […]}, "all": […]}

    n_gold = models.PositiveIntegerField()  # hidden gold traces that enough raters have met
    temperature = models.FloatField(default=1.0)
    temperature_reason = models.CharField(max_length=100, blank=True)  # why it is 1
    # Mean gap between probability and share right, on gold, before and after the temperature.
    gap_before = models.FloatField(null=True, blank=True)
    gap_after = models.FloatField(null=True, blank=True)
    # Accept from this probability on. Of so much gold that had it, so much was right, at least.
    threshold = models.FloatField(null=True, blank=True)
    threshold_reason = models.CharField(max_length=100, blank=True)  # why there is none
    n_accepted = models.PositiveIntegerField(default=0)
    lower_bound = models.FloatField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "basis", "number"], name="a_fit_has_one_number_in_its_project"),
        ]

    def __str__(self) -> str:
        return f"fit {self.number} of {self.project_id}"
