"""Idempotency keys: a repeated request returns the job of the first one instead of starting another."""

import datetime as dt
import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction

from accounts.models import User
from api.models import IdempotentRequest
from jobs.models import Job


class IdempotencyKeyReused(Exception):
    """The key was already used for a different request."""


class IdempotentJob(NamedTuple):
    job: Job
    is_new: bool


def fingerprint_request(**content: Any) -> str:
    """Hash what distinguishes a request from others with the same key."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def find_earlier_job(*, user: User, key: str, fingerprint: str) -> Job | None:
    """Return the job of an earlier request with the same key, if any."""
    earlier = IdempotentRequest.objects.filter(user=user, key=key).select_related("job").first() if key else None
    if earlier and earlier.fingerprint != fingerprint:
        raise IdempotencyKeyReused
    return earlier.job if earlier else None


def request_once(
    *, user: User, key: str, fingerprint: str, start: Callable[[], Job], now: dt.datetime
) -> IdempotentJob:
    """Start a job unless an earlier request did. Of concurrent requests, one starts it and all return the same job."""
    if job := find_earlier_job(user=user, key=key, fingerprint=fingerprint):
        return IdempotentJob(job, is_new=False)
    try:
        with transaction.atomic():
            job = start()
            if key:
                IdempotentRequest.objects.create(user=user, key=key, fingerprint=fingerprint, job=job, asked_at=now)
            return IdempotentJob(job, is_new=True)
    except IntegrityError:
        job = find_earlier_job(user=user, key=key, fingerprint=fingerprint)
        if job is None:
            raise
        return IdempotentJob(job, is_new=False)
