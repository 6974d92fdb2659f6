"""Manifests: frozen lists of submissions. Written by `labeling.datasets.manifest`."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from labeling.models.assignment import Submission
from labeling.models.project import Project
from labeling.models.trace import Trace


class Manifest(models.Model):
    """The rows that a snapshot or a training run uses, in order. Written once and never changed."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="manifests")
    purpose = models.CharField(max_length=40)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    code_version = models.CharField(max_length=64)
    filters = models.JSONField(default=dict)
    left_out = models.JSONField(default=dict)  # number of excluded rows by rule
    n_rows = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"manifest {self.pk}"


class ManifestRow(models.Model):
    """A submission of a trace, or only the trace if no submission is needed."""

    manifest = models.ForeignKey(Manifest, on_delete=models.PROTECT, related_name="rows", db_index=False)
    position = models.PositiveIntegerField()
    trace = models.ForeignKey(Trace, on_delete=models.PROTECT, related_name="+")
    submission = models.ForeignKey(Submission, null=True, on_delete=models.PROTECT, related_name="+")
    consensus_revision = models.PositiveIntegerField(null=True, blank=True)
    score_version = models.CharField(max_length=200, blank=True)  # the PRM whose scores are used
    is_contested = models.BooleanField(null=True)  # whether it was contested at that time; null if unresolved

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["manifest", "position"], name="a_manifest_has_one_row_at_a_position"),
        ]

    def __str__(self) -> str:
        return f"row {self.position}"
