"""Run a job in chunks: claim it, save its progress with each chunk, end it. Only this module and `jobs.control` write
jobs.

A handler is a generator function that receives the job and continues from `job.checkpoint`. It prepares a chunk (reads,
parses, computes) outside of any transaction, and yields a function that writes it. The runner calls that function in
one transaction with a guarded update of the job's row. So the data of a chunk and its checkpoint are saved together or
not at all, and a runner that has lost its lease saves neither.

    def chunks(job: Job) -> Iterator[Chunk]:
        for records in batches(after=job.checkpoint.get("line", 0)):
            yield partial(write, records)       # (now) -> JobProgress(done, total, {"line": 40})

A handler that writes nothing to the database yields a JobProgress directly; work before it may be repeated after a
crash. A handler reads in pages (`jobs.paging`), so that no cursor stays open over a commit. A chunk, with its
preparation, must take less time than the lease. Chunks are short, because a chunk holds its row locks until it commits.
"""

import datetime as dt
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from jobs import failures
from jobs.models import Job, JobState
from rawsql import statement_limits
from rawsql.planner_statistics import BulkWriteWatch

LEASE = dt.timedelta(seconds=20)
MAX_PARALLEL_JOBS = 3  # per process; a worker has one more thread, so that the sweep can always run

logger = structlog.get_logger(__name__)


class JobProgress(NamedTuple):
    """The progress of a job. None leaves a field unchanged; `result` is merged into the stored one."""

    done: int
    total: int | None = None
    checkpoint: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None


Chunk = Callable[[dt.datetime], JobProgress]
Handler = Callable[[Job], Iterator[JobProgress | Chunk]]
Clock = Callable[[], dt.datetime]

_job_slots = threading.BoundedSemaphore(MAX_PARALLEL_JOBS)


class JobLeaseLost(Exception):
    """Another runner has the job, or the sweep requeued it."""


class CancelRequested(Exception):
    """The job was cancelled."""


def run_job(
    job_id: int,
    handler: Handler,
    *,
    clock: Clock = timezone.now,
    lease: dt.timedelta = LEASE,
) -> JobState | None:
    """Run the job unless another runner has it. Return its final state, or None if this runner did not end it."""
    if not _job_slots.acquire(blocking=False):
        Job.objects.filter(pk=job_id, state=JobState.QUEUED).update(published_at=None)  # the next sweep offers it again
        return None
    try:
        job = _claim_job(job_id, clock(), lease)
        if job is None:
            return None
        with structlog.contextvars.bound_contextvars(job=job.pk, kind=job.kind, attempt=job.attempt):
            return _run_claimed(job, handler, clock, lease)
    finally:
        _job_slots.release()


def _run_claimed(job: Job, handler: Handler, clock: Clock, lease: dt.timedelta) -> JobState | None:
    try:
        with statement_limits.connection_may_idle():
            _run_chunks(job, handler, clock, lease)
    except JobLeaseLost:
        logger.warning("job.lease_lost")
        return None
    except CancelRequested:
        return _end_job(job, JobState.CANCELLED, clock())
    except (OperationalError, InterfaceError) as error:
        # The database is unavailable: retry from the checkpoint later. The sweep limits the number of retries.
        _release_for_retry(job, failures.describe_failure(error), clock())
        return None
    except Exception as error:  # the person who requested the job needs the reason
        logger.exception("job.failed")
        return _end_job(job, JobState.FAILED, clock(), failures.describe_failure(error))
    return _end_job(job, JobState.DONE, clock())


def _claim_job(job_id: int, now: dt.datetime, lease: dt.timedelta) -> Job | None:
    """Claim the job by a conditional update, which succeeds for only one of several concurrent runners."""
    job = Job.objects.claimable(now).filter(pk=job_id).first()
    if job is None:
        return None
    unclaimed = Job.objects.claimable(now).filter(pk=job_id, attempt=job.attempt)
    if not unclaimed.update(
        state=JobState.RUNNING,
        attempt=job.attempt + 1,
        fruitless_starts=job.fruitless_starts + 1,
        lease_ends_at=now + lease,
        started_at=now,
        done_before=job.done,
    ):
        return None
    job.refresh_from_db()
    return job


def _run_chunks(job: Job, handler: Handler, clock: Clock, lease: dt.timedelta) -> None:
    """Write each chunk and its checkpoint in one transaction."""
    logger.info("job.started", done=job.done, total=job.total)
    watch = BulkWriteWatch()
    for chunk in handler(job):
        with transaction.atomic():
            _check_lease_and_cancellation(job)
            progress = chunk if isinstance(chunk, JobProgress) else chunk(clock())
            _save_progress(job, progress, clock() + lease)
        watch.note_commit()
    watch.finish()


def run_here(chunks: Iterator[JobProgress | Chunk], clock: Clock = timezone.now) -> Iterator[JobProgress]:
    """Run the work of a job in this process without a job row, for commands."""
    watch = BulkWriteWatch()
    for chunk in chunks:
        with transaction.atomic():
            progress = chunk if isinstance(chunk, JobProgress) else chunk(clock())
        watch.note_commit()
        yield progress
    watch.finish()


def _check_lease_and_cancellation(job: Job) -> None:
    """Lock the row: the sweep skips it, and a cancellation waits for the end of the chunk."""
    row = Job.objects.held(job).select_for_update().only("cancel_asked_at").first()
    if row is None:
        raise JobLeaseLost
    if row.cancel_asked_at is not None:
        raise CancelRequested


def _save_progress(job: Job, progress: JobProgress, lease_ends_at: dt.datetime) -> None:
    job.done = progress.done
    job.total = job.total if progress.total is None else progress.total
    job.checkpoint = job.checkpoint if progress.checkpoint is None else dict(progress.checkpoint)
    job.result = {**job.result, **(progress.result or {})}
    Job.objects.held(job).update(
        done=job.done,
        total=job.total,
        checkpoint=job.checkpoint,
        result=job.result,
        lease_ends_at=lease_ends_at,
        fruitless_starts=0,
        failure="",
    )


def _end_job(job: Job, state: JobState, now: dt.datetime, failure: str = "") -> JobState | None:
    with transaction.atomic():
        if not Job.objects.held(job).update(state=state, ended_at=now, lease_ends_at=None, failure=failure):
            return None
        if state == JobState.FAILED:
            failures.log_failure(job=job, now=now)
    logger.info("job.ended", state=state.value, done=job.done)
    return state


def _release_for_retry(job: Job, failure: str, now: dt.datetime) -> None:
    """End the lease now, so that the next sweep requeues the job. If that fails too, the lease expires by itself."""
    logger.warning("job.set_aside", reason=failure)
    try:
        connection.close()
        Job.objects.held(job).update(lease_ends_at=now, failure=failure)
    except (OperationalError, InterfaceError):
        connection.close()
