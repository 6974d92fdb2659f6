"""Idempotency keys: a repeated request returns the job of the first one instead of starting another."""

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from django.db import IntegrityError, transaction

from accounts.models import User
from api.models import IdempotentRequest
from jobs.models import Job


class IdempotencyKeyReused(Exception):
    """The key was already used for a different request."""


def request_once(
    *, user: User, key: str, content: Mapping[str, Any], start: Callable[[], Job], now: dt.datetime
) -> tuple[Job, bool]:
    """Start a job unless an earlier request did, and return whether it is new.

    `content` distinguishes a request from others with the same key. Of concurrent requests, one starts the job and all
    return it.
    """
    fingerprint = hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
    if job := _find_earlier_job(user, key, fingerprint):
        return job, False
    try:
        with transaction.atomic():
            job = start()
            if key:
                IdempotentRequest.objects.create(user=user, key=key, fingerprint=fingerprint, job=job, asked_at=now)
            return job, True
    except IntegrityError:
        job = _find_earlier_job(user, key, fingerprint)
        if job is None:
            raise
        return job, False


def _find_earlier_job(user: User, key: str, fingerprint: str) -> Job | None:
    """Return the job of an earlier request with the same key, if any."""
    earlier = IdempotentRequest.objects.filter(user=user, key=key).select_related("job").first() if key else None
    if earlier and earlier.fingerprint != fingerprint:
        raise IdempotencyKeyReused
    return earlier.job if earlier else None
