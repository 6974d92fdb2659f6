"""Asks for background work, cancels it, asks again, and sweeps up what got lost. With `jobs.runner` the only module
that changes jobs, and the only one that tells the broker of them.

The row is the truth. News of it is published after the commit; when the news is lost (a dead broker, a process killed
between commit and publishing), the sweep publishes it again.
"""

import datetime as dt
from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog
from celery import current_app
from django.db import transaction
from django.db.models import Q
from kombu.exceptions import OperationalError as BrokerError

from accounts.models import User
from events import audit_log
from jobs import failures
from jobs.models import Job, JobState

QUEUE = "jobs"  # of their own, so that a long job never stands before short news
PUBLISH_TIMEOUT = dt.timedelta(seconds=30)  # how long the news of a queued job may take to arrive
FRUITLESS_STARTS_ALLOWED = 5

logger = structlog.get_logger(__name__)


class JobNotRetryable(Exception):
    """Only work that failed or was cancelled can be asked for again."""


def request_job(
    *, kind: str, subject: str = "", arguments: Mapping[str, Any] | None = None, by: User | None, now: dt.datetime
) -> Job:
    """Ask for work by the name of its Celery task. It starts after the commit of the transaction around this call."""
    job = Job.objects.create(
        kind=kind, subject=subject, arguments=dict(arguments or {}), asked_by=by, asked_at=now, published_at=now
    )
    _log_event("job.asked", job, by=by, now=now)
    _publish_after_commit(job)
    return job


def cancel_job(*, job: Job, by: User | None, now: dt.datetime) -> None:
    """Work that waits ends at once; work that runs ends after the chunk that it is at. What is done stays done."""
    with transaction.atomic():
        ended = Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
            state=JobState.CANCELLED, cancel_asked_at=now, ended_at=now
        )
        asked = ended or Job.objects.filter(pk=job.pk, state=JobState.RUNNING, cancel_asked_at=None).update(
            cancel_asked_at=now
        )
        if asked:
            _log_event("job.cancelled", job, by=by, now=now)


def retry_job(*, job: Job, by: User | None, now: dt.datetime) -> None:
    """Ask again for work that failed or was cancelled. It goes on from its checkpoint."""
    with transaction.atomic():
        asked = Job.objects.filter(pk=job.pk, state__in=[JobState.FAILED, JobState.CANCELLED]).update(
            state=JobState.QUEUED,
            failure="",
            fruitless_starts=0,
            cancel_asked_at=None,
            ended_at=None,
            lease_ends_at=None,
            published_at=now,
        )
        if not asked:
            raise JobNotRetryable
        _log_event("job.retried", job, by=by, now=now)
        _publish_after_commit(job)


def sweep_jobs(*, now: dt.datetime, patience: dt.timedelta = PUBLISH_TIMEOUT) -> int:
    """Put work whose runner vanished back into the queue, and publish what nobody took up. Says how much was published.
    Safe to run at any time, any number of times at once: news of a job that is being done is ignored."""
    _requeue_lost_jobs(now=now)
    waiting = Job.objects.filter(state=JobState.QUEUED).filter(
        Q(published_at=None) | Q(published_at__lt=now - patience)
    )
    published = 0
    for pk, kind in waiting.order_by("pk").values_list("pk", "kind")[:1000]:
        if not _publish(pk, kind):
            break  # the broker is down: the next sweep tries again
        Job.objects.filter(pk=pk, state=JobState.QUEUED).update(published_at=now)
        published += 1
    return published


def _requeue_lost_jobs(*, now: dt.datetime) -> None:
    """What a vanished runner held waits again, unless it was cancelled or has worn out too many runners."""
    with transaction.atomic():
        # A row that its runner holds right now is locked, and so not expired: skip it rather than wait for it.
        lost = Job.objects.select_for_update(skip_locked=True).filter(state=JobState.RUNNING, lease_ends_at__lt=now)
        for job in lost:
            logger.warning("job.lost", job=job.pk, kind=job.kind, attempt=job.attempt)
            Job.objects.held(job).update(**_state_after_loss(job, now))


def _state_after_loss(job: Job, now: dt.datetime) -> dict[str, Any]:
    if job.cancel_asked_at:
        return {"state": JobState.CANCELLED, "ended_at": now, "lease_ends_at": None}
    if job.fruitless_starts >= FRUITLESS_STARTS_ALLOWED:
        failure = failures.describe_repeated_loss(job.fruitless_starts, job.failure)
        return {"state": JobState.FAILED, "ended_at": now, "lease_ends_at": None, "failure": failure}
    return {"state": JobState.QUEUED, "lease_ends_at": None, "published_at": None}


def _publish_after_commit(job: Job) -> None:
    transaction.on_commit(partial(_publish_or_leave, job.pk, job.kind))


def _publish_or_leave(pk: int, kind: str) -> None:
    """A dead broker must not fail the request of the person who asked: the sweep will publish."""
    if not _publish(pk, kind):
        Job.objects.filter(pk=pk, state=JobState.QUEUED).update(published_at=None)


def _publish(pk: int, kind: str) -> bool:
    try:
        current_app.send_task(kind, args=[pk], queue=QUEUE)
    except BrokerError as error:
        logger.warning("job.not_published", job=pk, kind=kind, reason=failures.redact_secrets(str(error)))
        return False
    return True


def _log_event(what: str, job: Job, *, by: User | None, now: dt.datetime) -> None:
    """What people ask for stands in the log; what the platform asks of itself stands in the jobs alone."""
    if by is not None:
        audit_log.log_event(
            what=what, by=by, now=now, subject=f"job:{job.pk}", detail={"kind": job.kind, "of": job.subject}
        )
