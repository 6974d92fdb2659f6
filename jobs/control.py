"""Request, cancel, retry, and sweep background jobs. Only this module and `jobs.runner` write jobs, and only this
module publishes them to the broker.

The row is the source of truth. It is published after the commit. If the message is lost (the broker is down, or the
process is killed between commit and publishing), the sweep publishes the job again.
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

QUEUE = "jobs"  # separate, so that short tasks never wait for a long job
PUBLISH_TIMEOUT = dt.timedelta(seconds=30)  # until an unclaimed job is published again
FRUITLESS_STARTS_ALLOWED = 5

logger = structlog.get_logger(__name__)


class JobNotRetryable(Exception):
    """Only a failed or cancelled job can be retried."""


def request_job(
    *, kind: str, subject: str = "", arguments: Mapping[str, Any] | None = None, by: User | None, now: dt.datetime
) -> Job:
    """Create a job for a Celery task. It starts after the surrounding transaction commits."""
    job = Job.objects.create(
        kind=kind, subject=subject, arguments=dict(arguments or {}), asked_by=by, asked_at=now, published_at=now
    )
    _log_event("job.asked", job, by=by, now=now)
    transaction.on_commit(partial(_publish_or_leave, job.pk, kind))
    return job


def cancel_job(*, job: Job, by: User | None, now: dt.datetime) -> None:
    """Cancel a queued job immediately, or a running one after its current chunk. Finished chunks are kept."""
    with transaction.atomic():
        ended = Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
            state=JobState.CANCELLED, cancel_asked_at=now, ended_at=now
        )
        is_changed = ended or Job.objects.filter(pk=job.pk, state=JobState.RUNNING, cancel_asked_at=None).update(
            cancel_asked_at=now
        )
        if is_changed:
            _log_event("job.cancelled", job, by=by, now=now)


def retry_job(*, job: Job, by: User | None, now: dt.datetime) -> None:
    """Queue a failed or cancelled job again. It continues from its checkpoint."""
    with transaction.atomic():
        is_queued = Job.objects.filter(pk=job.pk, state__in=[JobState.FAILED, JobState.CANCELLED]).update(
            state=JobState.QUEUED,
            failure="",
            fruitless_starts=0,
            cancel_asked_at=None,
            ended_at=None,
            lease_ends_at=None,
            published_at=now,
        )
        if not is_queued:
            raise JobNotRetryable
        _log_event("job.retried", job, by=by, now=now)
        transaction.on_commit(partial(_publish_or_leave, job.pk, job.kind))


def sweep_jobs(*, now: dt.datetime, patience: dt.timedelta = PUBLISH_TIMEOUT) -> int:
    """Requeue jobs whose runner vanished, publish jobs that no worker has claimed, and return how many were published.

    Sweeps can run at any time and concurrently: workers ignore messages of a job that is running.
    """
    _requeue_lost_jobs(now=now)
    waiting = Job.objects.filter(state=JobState.QUEUED).filter(
        Q(published_at=None) | Q(published_at__lt=now - patience)
    )
    published = 0
    for pk, kind in waiting.order_by("pk").values_list("pk", "kind")[:1000]:
        if not _publish(pk, kind):
            break  # the broker is down; the next sweep tries again
        Job.objects.filter(pk=pk, state=JobState.QUEUED).update(published_at=now)
        published += 1
    return published


def _requeue_lost_jobs(*, now: dt.datetime) -> None:
    """Queue jobs with an expired lease again, unless they are cancelled or have lost too many runners."""
    with transaction.atomic():
        # The row of a job that is saving a chunk is locked, and its lease is about to be renewed: skip it.
        lost = Job.objects.select_for_update(skip_locked=True).filter(state=JobState.RUNNING, lease_ends_at__lt=now)
        for job in lost:
            logger.warning("job.lost", job=job.pk, kind=job.kind, attempt=job.attempt)
            after = _state_after_loss(job, now)
            if Job.objects.held(job).update(**after) and after["state"] == JobState.FAILED:
                failures.log_failure(job=job, now=now)


def _state_after_loss(job: Job, now: dt.datetime) -> dict[str, Any]:
    if job.cancel_asked_at:
        return {"state": JobState.CANCELLED, "ended_at": now, "lease_ends_at": None}
    if job.fruitless_starts >= FRUITLESS_STARTS_ALLOWED:
        failure = failures.describe_repeated_loss(job.fruitless_starts, job.failure)
        return {"state": JobState.FAILED, "ended_at": now, "lease_ends_at": None, "failure": failure}
    return {"state": JobState.QUEUED, "lease_ends_at": None, "published_at": None}


def _publish_or_leave(pk: int, kind: str) -> None:
    """Leave the job to the sweep if the broker is down, so that the person's request does not fail."""
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
    """Log what people request. The platform's own jobs are not logged."""
    if by is not None:
        audit_log.log_event(
            what=what, by=by, now=now, subject=f"job:{job.pk}", detail={"kind": job.kind, "of": job.subject}
        )
