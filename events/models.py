"""The append-only audit log. Written by `events.audit_log`."""

from typing import ClassVar

from django.db import models


class Event(models.Model):
    """Who did what, and when. The database refuses changes and deletion."""

    at = models.DateTimeField()
    # No foreign key: an event outlives its actor, and no cascade may change it.
    by = models.BigIntegerField(null=True, blank=True)
    what = models.CharField(max_length=60)
    project = models.BigIntegerField(null=True, blank=True)
    subject = models.CharField(max_length=100, blank=True)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["project", "-id"], name="event_by_project"),
            models.Index(fields=["subject", "-id"], name="event_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.what} {self.subject}"
