"""Pairs of traces that differ by an intervention, and who was given which half.

`labeling.traces` writes PairedTrace. `labeling.queue` writes PairReader and PairReviewer.
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models.project import Project
from labeling.models.rater import Rater
from labeling.models.trace import Trace


class PairHalf(models.TextChoices):
    """Whether the intervention, such as a hint in the prompt, was made."""

    WITH = "with", _("with the intervention")
    WITHOUT = "without", _("without the intervention")


class PairedTrace(models.Model):
    """The pair and the half of a trace. A half may have several traces. A table of its own, because the claim looks a
    trace up here, and most projects have no pairs."""

    trace = models.OneToOneField(Trace, primary_key=True, on_delete=models.CASCADE, related_name="pairing")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    pair = models.CharField(max_length=200)
    half = models.CharField(max_length=8, choices=PairHalf)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~Q(pair="") & Q(half__in=["with", "without"]), name="a_paired_trace_is_one_half"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "pair"], name="paired_trace_by_pair")]

    def __str__(self) -> str:
        return f"{self.pair} {self.half}"


class PairReader(models.Model):
    """The half of a pair that a rater was given. It is never deleted: the other half is not for this rater."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="+", db_index=False)
    pair = models.CharField(max_length=200)
    half = models.CharField(max_length=8, choices=PairHalf)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater", "pair"], name="a_rater_reads_one_half_of_a_pair"),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id}: {self.pair} {self.half}"


class PairReviewer(models.Model):
    """The half of a pair that a person read to judge the labels of others. They need not be a rater."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    pair = models.CharField(max_length=200)
    half = models.CharField(max_length=8, choices=PairHalf)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "user", "pair"], name="a_reviewer_reads_one_half_of_a_pair"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.pair} {self.half}"
