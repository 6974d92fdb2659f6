"""Snapshots with their shards, files, and deliveries; disclosures for dataset cards; and split assignments. Written by
`exports.snapshots`, `exports.finish_job`, `exports.deliveries`, `exports.card`, and `exports.splits`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from labeling.models import Manifest, Project


class SnapshotPurpose(models.TextChoices):
    ARCHIVE = "archive", _("archive: everything, unchanged")
    TRAINING = "training", _("training: without evaluation and gold data")


def text_field() -> "models.TextField[str, str]":
    return models.TextField(blank=True)


class ProjectDisclosure(models.Model):
    """Statements of a lead about a project. Empty fields are printed as "not stated"."""

    project = models.OneToOneField(Project, primary_key=True, on_delete=models.CASCADE, related_name="statement")
    process_supervised = text_field()
    base_model = text_field()
    policy = text_field()
    orm = text_field()
    prm = text_field()
    judge = text_field()
    human_source = text_field()
    scaffold = text_field()
    deployment_monitor = text_field()
    where_tested = text_field()
    known_failures = text_field()
    raters = text_field()  # who they are, how they were trained and screened
    pay = text_field()
    domains_not_covered = text_field()
    licence = models.CharField(max_length=200, blank=True)
    stated_at = models.DateTimeField()
    stated_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    def __str__(self) -> str:
        return f"disclosure of project {self.project_id}"


class SplitAssignment(models.Model):
    """The position of a problem when its project is split. Append-only, and kept when the problem's import is
    undone."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", db_index=False)
    number = models.PositiveIntegerField()  # the order of assignment
    digest = models.CharField(max_length=64)  # of the problem's text
    normal_digest = models.CharField(max_length=64)
    low = models.FloatField()  # an interval of [0, 1): see `exports.splits`
    high = models.FloatField()
    signature = models.BinaryField()  # MinHash, for comparison with later problems
    decided_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="split_assignments_are_numbered_in_a_project"),
            models.UniqueConstraint(fields=["project", "digest"], name="a_problem_is_assigned_once_in_a_project"),
            models.CheckConstraint(condition=Q(low__lte=F("high")), name="a_split_interval_is_ordered"),
        ]

    def __str__(self) -> str:
        return f"{self.digest[:8]} at {self.low:.3f}"


class Snapshot(models.Model):
    """An exported dataset. Its manifest is frozen before the first row is written. A built snapshot never changes."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="snapshots")
    name = models.SlugField(max_length=100)
    purpose = models.CharField(max_length=10, choices=SnapshotPurpose, default=SnapshotPurpose.ARCHIVE)
    order = models.JSONField(default=dict)  # `exports.orders.SnapshotOrder`
    manifest = models.OneToOneField(Manifest, null=True, on_delete=models.PROTECT, related_name="snapshot")
    plan = models.JSONField(default=dict)  # `exports.shards.BuildPlan`
    statement = models.JSONField(default=dict)  # the disclosure at the time of the order
    figures = models.JSONField(default=dict)
    shards_left = models.PositiveIntegerField(default=0)
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    frozen_at = models.DateTimeField(null=True, blank=True)
    built_at = models.DateTimeField(null=True, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="snapshot_names_are_unique_in_a_project"),
            models.CheckConstraint(
                condition=Q(built_at=None) | Q(manifest__isnull=False), name="a_built_snapshot_has_a_manifest"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "-asked_at"], name="snapshot_newest")]

    def __str__(self) -> str:
        return self.name


class Shard(models.Model):
    """A range of a manifest that one worker writes. After a crash, its files are written again from the start."""

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="shards", db_index=False)
    number = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    stop = models.PositiveIntegerField()
    figures = models.JSONField(default=dict)
    built_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["snapshot", "number"], name="shard_numbers_are_unique_in_a_snapshot"),
        ]

    def __str__(self) -> str:
        return f"shard {self.number}"


class SnapshotFile(models.Model):
    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="files", db_index=False)
    name = models.CharField(max_length=200)  # path below the snapshot's folder
    format = models.CharField(max_length=40, blank=True)
    split = models.CharField(max_length=20, blank=True)
    rows = models.PositiveBigIntegerField(null=True, blank=True)
    size = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["snapshot", "name"], name="file_names_are_unique_in_a_snapshot"),
        ]

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """The delivery of a snapshot to a configured destination. Its job has the progress."""

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    destination = models.CharField(max_length=100)
    address = models.CharField(max_length=700)  # as configured when the delivery was requested
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["snapshot", "destination"], name="a_snapshot_is_delivered_once_to_a_destination"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.snapshot_id} to {self.destination}"
