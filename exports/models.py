"""Snapshots: what was asked for, what was built, where it went, and what the lead states of a project for its cards.
And where problems sit in splits. Owned by `exports.snapshots`, `exports.deliveries`, `exports.disclosures` and
`exports.split_assignment`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from labeling.models import Manifest, Project


class SnapshotPurpose(models.TextChoices):
    ARCHIVE = "archive", _("archive: everything as it is")
    TRAINING = "training", _("training: without what judges a model or a rater")


def text_field() -> "models.TextField[str, str]":
    return models.TextField(blank=True)


class ProjectDisclosure(models.Model):
    """What a lead states of a project, in words; what stands empty is printed as not stated."""

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
        return f"statement on {self.project_id}"


class SplitAssignment(models.Model):
    """Where a problem sits when its project is split: decided once, and kept when the problem is taken back. Only ever
    added."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", db_index=False)
    number = models.PositiveIntegerField()  # the order in which they were decided
    digest = models.CharField(max_length=64)  # of the problem
    normal_digest = models.CharField(max_length=64)
    low = models.FloatField()  # a stretch of [0, 1): see `exports.splits`
    high = models.FloatField()
    signature = models.BinaryField()  # by which later ones are held against it
    decided_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="seats_are_decided_one_after_the_other"),
            models.UniqueConstraint(fields=["project", "digest"], name="a_problem_sits_once_in_a_project"),
            models.CheckConstraint(condition=Q(low__lte=F("high")), name="a_seat_goes_from_low_to_high"),
        ]

    def __str__(self) -> str:
        return f"{self.digest[:8]} at {self.low:.3f}"


class Snapshot(models.Model):
    """An exported dataset. Its manifest is frozen before the first row, and what was built is never changed."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="snapshots")
    name = models.SlugField(max_length=100)
    purpose = models.CharField(max_length=10, choices=SnapshotPurpose, default=SnapshotPurpose.ARCHIVE)
    order = models.JSONField(default=dict)  # what was asked for: `exports.orders.SnapshotOrder`
    manifest = models.OneToOneField(Manifest, null=True, on_delete=models.PROTECT, related_name="snapshot")
    plan = models.JSONField(default=dict)  # what was found out before the manifest was frozen
    statement = models.JSONField(default=dict)  # as it stood then
    figures = models.JSONField(default=dict)
    shards_left = models.PositiveIntegerField(default=0)
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    frozen_at = models.DateTimeField(null=True, blank=True)
    built_at = models.DateTimeField(null=True, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="a_project_has_one_snapshot_of_a_name"),
            models.CheckConstraint(
                condition=Q(built_at=None) | Q(manifest__isnull=False), name="what_is_built_has_a_manifest"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "-asked_at"], name="snapshot_newest")]

    def __str__(self) -> str:
        return self.name


class Shard(models.Model):
    """A stretch of a manifest that one worker writes. Begun anew after a crash: its files are small, and come out the
    same."""

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="shards", db_index=False)
    number = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    stop = models.PositiveIntegerField()
    figures = models.JSONField(default=dict)
    built_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["snapshot", "number"], name="a_snapshot_has_one_shard_of_a_number"),
        ]

    def __str__(self) -> str:
        return f"shard {self.number}"


class SnapshotFile(models.Model):
    """A file of a snapshot, as it was written."""

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="files", db_index=False)
    name = models.CharField(max_length=200)  # path below the snapshot's folder
    format = models.CharField(max_length=40, blank=True)
    split = models.CharField(max_length=20, blank=True)
    rows = models.PositiveBigIntegerField(null=True, blank=True)
    size = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["snapshot", "name"], name="a_snapshot_has_one_file_of_a_name"),
        ]

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """A snapshot on its way to a place that is set up for it, by the place's name. Its job knows how far it is."""

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    destination = models.CharField(max_length=100)
    address = models.CharField(max_length=700)  # where its files lie, as it was set up when it was asked for
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["snapshot", "destination"], name="a_snapshot_goes_once_to_a_destination"),
        ]

    def __str__(self) -> str:
        return f"{self.snapshot_id} to {self.destination}"
