"""The append-only log: who did what to which, and when. Owned by `events.audit_log`."""

from typing import ClassVar

from django.db import models


class Event(models.Model):
    """Never changed, never deleted: the database refuses both."""

    at = models.DateTimeField()
    # No foreign key: an event outlives its actor, and a cascade may not touch it.
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


class EventOrigin(models.Model):
    """Where an event came from. Personal data, so it stands apart and may be erased."""

    event = models.OneToOneField(Event, on_delete=models.DO_NOTHING, primary_key=True, related_name="origin")
    address = models.GenericIPAddressField(null=True, blank=True)
    agent = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"{self.address}"
