"""Run one job in chunks: claim it, save its progress with each chunk, end it. Only this module and `jobs.control`
change jobs.

A handler is a generator function that is given the job and goes on from `job.checkpoint`. It prepares a chunk (reads,
parses, computes) outside of any transaction, and yields a function that writes it. The runner calls that function in
one transaction with the guarded update of the job's row: the chunk's data and the checkpoint that says so are kept
together or not at all, and a runner that has lost its lease to another keeps neither.

    def chunks(job: Job) -> Iterator[Chunk]:
        for records in batches(after=job.checkpoint.get("line", 0)):
            yield partial(write, records)       # (now) -> Progress(done, total, {"line": 40})

A handler without anything to write in the database yields the Progress itself; what it did before may then be done
twice. A handler reads in pages (`jobs.paging`), so that no cursor stays open over a commit. A chunk takes less than a
lease, with its preparation, or is given a longer one. Chunks are short because a chunk holds its row locks until it
commits; nothing else about a job keeps people waiting.
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

LEASE = dt.timedelta(seconds=20)
MAX_PARALLEL_JOBS = (
    3  # in one process; a worker with threads has one more, for short news: without it nothing would be swept
)

logger = structlog.get_logger(__name__)


class JobProgress(NamedTuple):
    """How far the job has come. What is None stays as it was; `result` is added to what is there."""

    done: int
    total: int | None = None
    checkpoint: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None


Chunk = Callable[[dt.datetime], JobProgress]
Handler = Callable[[Job], Iterator[JobProgress | Chunk]]
Clock = Callable[[], dt.datetime]

_job_slots = threading.BoundedSemaphore(MAX_PARALLEL_JOBS)


class JobLeaseLost(Exception):
    """Another runner has the job, or the sweep gave it back: this one keeps nothing more."""


class CancelRequested(Exception):
    """Somebody wants the job to end."""


def run_job(
    job_id: int,
    handler: Handler,
    *,
    clock: Clock = timezone.now,
    lease: dt.timedelta = LEASE,
) -> JobState | None:
    """Do the job, if nobody else does. Says how it ended, or None when it was not this runner that ended it."""
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
        _run_chunks(job, handler, clock, lease)
    except JobLeaseLost:
        logger.warning("job.lease_lost")
        return None
    except CancelRequested:
        return _end_job(job, JobState.CANCELLED, clock())
    except (OperationalError, InterfaceError) as error:
        # The database was away: worth another try from the checkpoint, and the sweep counts the tries.
        _release_for_retry(job, failures.describe_failure(error), clock())
        return None
    except Exception as error:  # whatever a handler dies of, the person who asked must be told
        logger.exception("job.failed")
        return _end_job(job, JobState.FAILED, clock(), failures.describe_failure(error))
    return _end_job(job, JobState.DONE, clock())


def _claim_job(job_id: int, now: dt.datetime, lease: dt.timedelta) -> Job | None:
    """Take the job by a conditional update: of two runners at the same time, one changes the row."""
    job = Job.objects.claimable(now).filter(pk=job_id).first()
    if job is None:
        return None
    claimed = Job.objects.claimable(now).filter(pk=job_id, attempt=job.attempt)
    if not claimed.update(
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
    logger.info("job.started", done=job.done, total=job.total)
    for chunk in handler(job):
        _run_chunk(job, chunk, clock, lease)


def _run_chunk(job: Job, chunk: JobProgress | Chunk, clock: Clock, lease: dt.timedelta) -> None:
    """Write the chunk and its checkpoint in one transaction."""
    with transaction.atomic():
        _check_lease_and_cancellation(job)
        progress = chunk if isinstance(chunk, JobProgress) else chunk(clock())
        _save_progress(job, progress, clock() + lease)


def _check_lease_and_cancellation(job: Job) -> None:
    """Locks the row: the sweep skips it, and a cancellation waits for the end of the chunk."""
    held = Job.objects.held(job).select_for_update().values_list("cancel_asked_at").first()
    if held is None:
        raise JobLeaseLost
    if held[0] is not None:
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
    ended = Job.objects.held(job).update(state=state, ended_at=now, lease_ends_at=None, failure=failure)
    if not ended:
        return None
    logger.info("job.ended", state=state.value, done=job.done)
    return state


def _release_for_retry(job: Job, failure: str, now: dt.datetime) -> None:
    """End the lease at once, so that the next sweep finds the job; where even that fails, it ends by itself."""
    logger.warning("job.set_aside", reason=failure)
    try:
        connection.close()
        Job.objects.held(job).update(lease_ends_at=now, failure=failure)
    except (OperationalError, InterfaceError):
        connection.close()
