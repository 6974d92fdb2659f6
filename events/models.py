"""The append-only audit log. Written by `events.audit_log`; `events.origins` deletes origins."""

from typing import ClassVar

from django.db import models

# The names of the events in the security log: accounts, people, downloads and copies of data.
SECURITY_EVENTS = r"^(account|user|member|invitation|download|snapshot|backup)\."


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
            # The security log shows few of many events.
            models.Index(fields=["-id"], condition=models.Q(what__regex=SECURITY_EVENTS), name="event_for_security"),
            models.Index(fields=["project", "-id"], name="event_by_project"),
            models.Index(fields=["subject", "-id"], name="event_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.what} {self.subject}"


class QueuedEvent(models.Model):
    """An event from which no notice was made yet. The row is written in the transaction of the event."""

    event = models.OneToOneField(Event, on_delete=models.DO_NOTHING, primary_key=True, related_name="+")

    def __str__(self) -> str:
        return f"queued event {self.event_id}"


class EventOrigin(models.Model):
    """The address and browser that an event came from. Unlike the event, it is deleted after a time, and on erasure."""

    event = models.OneToOneField(Event, on_delete=models.DO_NOTHING, primary_key=True, related_name="origin")
    address = models.GenericIPAddressField(null=True, blank=True)
    browser = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"origin of event {self.event_id}"
