"""Requests with an idempotency key ask for work once, however often the network makes the program send them."""

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
    """The key stands for another request already."""


class IdempotentJob(NamedTuple):
    job: Job
    is_new: bool


def fingerprint_request(**what: Any) -> str:
    """What tells one request from another."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()


def find_earlier_job(*, user: User, key: str, fingerprint: str) -> Job | None:
    """The work that this request has asked for before."""
    before = IdempotentRequest.objects.filter(user=user, key=key).select_related("job").first() if key else None
    if before and before.fingerprint != fingerprint:
        raise IdempotencyKeyReused
    return before.job if before else None


def request_once(*, user: User, key: str, fingerprint: str, ask: Callable[[], Job], now: dt.datetime) -> IdempotentJob:
    """Ask, unless this request did. Of two at the same moment one asks, and both are told of the same work."""
    if before := find_earlier_job(user=user, key=key, fingerprint=fingerprint):
        return IdempotentJob(before, is_new=False)
    try:
        with transaction.atomic():
            job = ask()
            if key:
                IdempotentRequest.objects.create(user=user, key=key, fingerprint=fingerprint, job=job, asked_at=now)
            return IdempotentJob(job, is_new=True)
    except IntegrityError:
        before = find_earlier_job(user=user, key=key, fingerprint=fingerprint)
        if before is None:
            raise
        return IdempotentJob(before, is_new=False)
