"""PRMs, their scores and their usage.

`prm.registry` changes PRM, `prm.scores` Score, `prm.file_evaluation` FileEvaluation, `prm.inference` PRMUsage.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models import Manifest, Project, Trace


class BackendKind(models.TextChoices):
    BUILTIN = "builtin", _("builtin")
    VLLM = "vllm", _("vLLM")
    HTTP = "http", _("a scorer over HTTP")
    PUSHED = "pushed", _("pushed scores")


class SemanticsKind(models.TextChoices):
    HAZARD = "hazard", _("P(step correct | earlier steps correct)")
    VALUE = "value", _("P(final answer correct | steps so far)")
    PROGRESS = "progress", _("progress, a signed difference")


def encode_ids(ids: Sequence[int]) -> bytes:
    return np.array(ids, dtype="<i8").tobytes()


class PRM(models.Model):
    """One version of a process reward model. Its identity never changes: other weights are another version."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="prms", db_index=False)
    version = models.PositiveIntegerField()
    backend = models.CharField(max_length=8, choices=BackendKind)
    semantics = models.CharField(max_length=8, choices=SemanticsKind, default=SemanticsKind.HAZARD)
    # Its identity: the name that its server knows, and a hash of its weights.
    model = models.CharField(max_length=200)
    digest = models.CharField(max_length=100, blank=True)

    address = models.URLField(max_length=500, blank=True)
    options = models.JSONField(default=dict)  # style, batch, timeout
    secret = models.BinaryField(null=True, blank=True)  # encrypted: a bearer token or a signing secret
    weights = models.BinaryField(null=True, blank=True)  # of a builtin PRM
    manifest = models.ForeignKey(Manifest, null=True, on_delete=models.PROTECT, related_name="prms", db_index=False)
    trained = models.BinaryField(null=True, blank=True)  # encoded ids of the traces, for audits
    n_trained = models.PositiveIntegerField(null=True, blank=True)  # traces

    evaluation = models.JSONField(default=dict)  # figures by name, with intervals and counts
    audits = models.JSONField(default=dict)
    calibration = models.JSONField(default=dict)  # Platt's line, from the held-out set
    threshold = models.FloatField(default=0.5)  # P(wrong) that flags a step
    evaluated_at = models.DateTimeField(null=True, blank=True)

    registered_at = models.DateTimeField()
    registered_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    is_current = models.BooleanField(default=False)
    made_current_at = models.DateTimeField(null=True, blank=True)
    made_current_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    predecessor = models.ForeignKey(  # the current PRM before this one
        "self", null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "version"], name="a_prm_version_is_registered_once"),
            models.UniqueConstraint(
                fields=["project"], condition=Q(is_current=True), name="a_project_has_one_current_prm"
            ),
            models.CheckConstraint(
                condition=Q(is_current=False) | Q(made_current_at__isnull=False),
                name="a_current_prm_was_made_so_at_a_time",
            ),
            models.CheckConstraint(
                condition=~Q(backend__in=["vllm", "http"]) | ~Q(address=""), name="a_prm_elsewhere_has_an_address"
            ),
            models.CheckConstraint(
                condition=~Q(backend="builtin") | Q(weights__isnull=False), name="a_builtin_prm_has_its_weights"
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """The name in draws and datasets."""
        return f"{self.version} {self.model}" + (f" {self.digest[:8]}" if self.digest else "")

    def trained_ids(self) -> list[int]:
        """Return the traces of the training set; empty if it is not stated."""
        ids: list[int] = np.frombuffer(bytes(self.trained or b""), dtype="<i8").tolist()
        return ids


class Score(models.Model):
    """A PRM's scores of the steps of one trace, with the steps' sizes, as `prm.scores` encodes them."""

    prm = models.ForeignKey(PRM, on_delete=models.CASCADE, related_name="scores", db_index=False)
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="+")
    numbers = models.BinaryField()
    scored_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["prm", "trace"], name="a_prm_scores_a_trace_once"),
        ]

    def __str__(self) -> str:
        return f"{self.prm_id} of {self.trace_id}"


class FileEvaluation(models.Model):
    """A PRM's figures on a file in ProcessBench's format, at the threshold that the PRM had at that time."""

    prm = models.ForeignKey(PRM, on_delete=models.CASCADE, related_name="file_evaluations")
    name = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)  # sha256 of the file
    figures = models.JSONField()
    threshold = models.FloatField()
    evaluated_at = models.DateTimeField()
    evaluated_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    def __str__(self) -> str:
        return f"{self.prm_id} on {self.name}"


class PRMUsagePurpose(models.TextChoices):
    RERANK = "rerank", _("rerank")
    REWARD = "reward", _("reward")
    FLAG = "flag", _("flag")


class PRMUsage(models.Model):
    """How often a user called a PRM through the API, by purpose and day."""

    prm = models.ForeignKey(PRM, on_delete=models.CASCADE, related_name="uses", db_index=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    purpose = models.CharField(max_length=8, choices=PRMUsagePurpose)
    day = models.DateField()
    n_calls = models.PositiveIntegerField(default=0)
    n_steps = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["prm", "by", "purpose", "day"], name="uses_are_counted_by_purpose_and_day"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} of {self.prm_id}"
