"""Background jobs. The rows are the source of truth; the broker only wakes workers.

Only `jobs.control` and `jobs.runner` write them.
"""

import datetime as dt
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class JobState(models.TextChoices):
    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("canceled")


_UNFINISHED_STATES = (JobState.QUEUED, JobState.RUNNING)


class JobQuerySet(models.QuerySet["Job"]):
    def unfinished(self) -> "JobQuerySet":
        return self.filter(state__in=_UNFINISHED_STATES)

    def claimable(self, now: dt.datetime) -> "JobQuerySet":
        """Select queued jobs, and running ones whose lease has expired."""
        return self.filter(Q(state=JobState.QUEUED) | Q(state=JobState.RUNNING, lease_ends_at__lt=now))

    def held(self, job: "Job") -> "JobQuerySet":
        """Select the row while the runner that claimed this attempt still holds it."""
        return self.filter(pk=job.pk, attempt=job.attempt, state=JobState.RUNNING)


class Job(models.Model):
    """Background work whose progress survives a crash."""

    kind = models.CharField(max_length=60)  # the name of the Celery task
    subject = models.CharField(max_length=100, blank=True)  # "project:12"
    arguments = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=JobState, default=JobState.QUEUED)
    attempt = models.PositiveIntegerField(default=0)  # the number of claims; a runner with a lower one has lost the job
    fruitless_starts = models.PositiveSmallIntegerField(default=0)  # claims since the last progress
    lease_ends_at = models.DateTimeField(null=True, blank=True)
    done = models.PositiveBigIntegerField(default=0)
    done_before = models.PositiveBigIntegerField(default=0)  # by the attempts before this one
    total = models.PositiveBigIntegerField(null=True, blank=True)
    checkpoint = models.JSONField(default=dict)  # where to continue after a crash
    result = models.JSONField(default=dict)
    failure = models.TextField(blank=True)
    cancel_asked_at = models.DateTimeField(null=True, blank=True)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    asked_at = models.DateTimeField()
    published_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_ends_at__isnull=False, started_at__isnull=False),
                name="running_jobs_have_a_lease",
            ),
            models.CheckConstraint(condition=~Q(state="failed") | ~Q(failure=""), name="failed_jobs_have_a_reason"),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running"], ended_at=None)
                | Q(state__in=["done", "failed", "cancelled"], ended_at__isnull=False),
                name="ended_jobs_have_an_end_time",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["state", "lease_ends_at"], condition=Q(state__in=["queued", "running"]), name="job_to_sweep"
            ),
            models.Index(fields=["subject", "-id"], name="job_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def is_unfinished(self) -> bool:
        return self.state in _UNFINISHED_STATES

    @property
    def is_cancelling(self) -> bool:
        return self.is_unfinished and self.cancel_asked_at is not None

    def share_done(self) -> float | None:
        """Return a number between 0 and 1, or None while the total is unknown."""
        if self.state == JobState.DONE:
            return 1.0
        return min(self.done / self.total, 1.0) if self.total else None

    def remaining_seconds(self, now: dt.datetime) -> float | None:
        """Estimate the remaining time from the pace of this attempt; None without progress. Before the total is known,
        use the bytes `read` of a file's `size` in `result`."""
        if self.state != JobState.RUNNING or self.started_at is None:
            return None
        done, whole = self.result.get("read", 0), self.result.get("size", 0)
        if self.total:
            done, whole = self.done - self.done_before, self.total - self.done_before
        if done <= 0:
            return None
        left: float = (now - self.started_at).total_seconds() / done * (whole - done)
        return max(left, 0.0)
