"""Idempotency keys and their jobs, written by `api.idempotency`."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from jobs.models import Job


class IdempotentRequest(models.Model):
    """A request with an idempotency key, and the job that it started."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=100)
    fingerprint = models.CharField(max_length=64)  # of the request's content
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")
    asked_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "key"], name="a_key_of_a_person_stands_for_one_request"),
        ]

    def __str__(self) -> str:
        return self.key
