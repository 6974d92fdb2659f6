"""A job survives the loss of its runner, and each chunk is saved once."""

import datetime as dt
from collections.abc import Iterator
from functools import partial

import pytest
from django.db import OperationalError

from events import audit_log
from events.models import Event
from jobs import control, failures, runner
from jobs.models import Job, JobState
from jobs.runner import Chunk, JobProgress
from tests.factories import NOW

pytestmark = pytest.mark.django_db
LEASE = dt.timedelta(seconds=20)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> dt.datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += dt.timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def request(**arguments: object) -> Job:
    return control.request_job(kind="tests.count", subject="project:1", arguments=arguments, by=None, now=NOW)


def write(number: int, total: int, now: dt.datetime) -> JobProgress:
    """Write a chunk: one row, and the progress."""
    audit_log.log_event(what=f"chunk {number}", by=None, now=now)
    return JobProgress(number, total, {"at": number}, {"last": number})


def count(job: Job, *, to: int = 5) -> Iterator[Chunk]:
    for number in range(job.checkpoint.get("at", 0) + 1, to + 1):
        yield partial(write, number, to)


def list_events() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("what", flat=True))


def reload(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def test_every_chunk_runs_once(clock: Clock) -> None:
    job = request()
    assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
    job = reload(job)
    assert list_events() == [f"chunk {n}" for n in range(1, 6)]
    assert (job.state, job.done, job.total, job.attempt) == ("done", 5, 5, 1)
    assert (job.checkpoint, job.result, job.ended_at, job.lease_ends_at) == ({"at": 5}, {"last": 5}, NOW, None)
    assert runner.run_job(job.pk, count, clock=clock) is None
    assert len(list_events()) == 5


def test_missing_job_is_ignored(clock: Clock) -> None:
    assert runner.run_job(404, count, clock=clock) is None


def test_handler_can_yield_progress_directly(clock: Clock) -> None:
    job = request()
    runner.run_job(job.pk, lambda job: iter([JobProgress(1), JobProgress(2, 2, result={"file": "a"})]), clock=clock)
    assert (reload(job).done, reload(job).total, reload(job).result) == (2, 2, {"file": "a"})


def test_running_job_is_not_claimed_again(clock: Clock) -> None:
    def busy(job: Job) -> Iterator[Chunk]:
        assert runner.run_job(job.pk, count, clock=clock) is None
        yield from count(job)

    job = request()
    assert runner.run_job(job.pk, busy, clock=clock) is JobState.DONE
    assert (len(list_events()), reload(job).attempt) == (5, 1)


def test_run_continues_from_the_checkpoint_after_a_crash(clock: Clock) -> None:
    class Killed(BaseException):
        """Like a signal: the runner executes nothing more."""

    def dying(job: Job) -> Iterator[Chunk]:
        for chunk in count(job):
            yield chunk
            if reload(job).done == 3:
                raise Killed

    job = request()
    with pytest.raises(Killed):
        runner.run_job(job.pk, dying, clock=clock)
    assert (reload(job).state, reload(job).done) == ("running", 3)
    assert runner.run_job(job.pk, count, clock=clock) is None
    clock.advance(21)
    assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
    assert list_events() == [f"chunk {n}" for n in range(1, 6)]
    assert (reload(job).attempt, reload(job).done_before) == (2, 3)


def test_runner_with_a_lost_lease_saves_nothing(clock: Clock) -> None:
    """A runner was suspended longer than its lease, and another one has finished the job."""

    def slow(job: Job) -> Iterator[Chunk]:
        chunks = count(job)
        yield next(chunks)
        clock.advance(21)
        assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
        yield from chunks

    job = request()
    assert runner.run_job(job.pk, slow, clock=clock) is None
    assert list_events() == [f"chunk {n}" for n in range(1, 6)]
    assert (reload(job).state, reload(job).attempt) == ("done", 2)


def test_runner_saves_nothing_after_the_sweep_requeued_the_job(clock: Clock) -> None:
    def slow(job: Job) -> Iterator[Chunk]:
        clock.advance(21)
        control.sweep_jobs(now=clock())
        yield partial(write, 1, 1)

    job = request()
    assert runner.run_job(job.pk, slow, clock=clock) is None
    assert (list_events(), reload(job).state) == ([], "queued")


def test_each_chunk_renews_the_lease(clock: Clock) -> None:
    def steady(job: Job) -> Iterator[Chunk]:
        for chunk in count(job):
            clock.advance(15)
            yield chunk
            assert reload(job).lease_ends_at == clock.now + LEASE
            control.sweep_jobs(now=clock())

    job = request()
    assert runner.run_job(job.pk, steady, clock=clock, lease=LEASE) is JobState.DONE
    assert reload(job).attempt == 1


def test_cancelled_job_ends_after_its_chunk(clock: Clock) -> None:
    def cancelled(job: Job) -> Iterator[Chunk]:
        chunks = count(job)
        yield next(chunks)
        control.cancel_job(job=job, by=None, now=clock())
        yield from chunks

    job = request()
    assert runner.run_job(job.pk, cancelled, clock=clock) is JobState.CANCELLED
    assert (list_events(), reload(job).state, reload(job).ended_at) == (["chunk 1"], "cancelled", NOW)


def test_failed_job_has_a_reason_and_keeps_finished_chunks(clock: Clock) -> None:
    def failing(job: Job) -> Iterator[Chunk]:
        yield partial(write, 1, 2)
        raise failures.JobFailed("Line 2 has no text.")

    job = request()
    assert runner.run_job(job.pk, failing, clock=clock) is JobState.FAILED
    assert (list_events(), reload(job).failure) == (["chunk 1"], "Line 2 has no text.")
    control.retry_job(job=job, by=None, now=NOW)
    assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
    assert (len(list_events()), reload(job).failure) == (5, "")


def test_failed_chunk_is_rolled_back(clock: Clock) -> None:
    def write_and_fail(now: dt.datetime) -> JobProgress:
        write(1, 1, now)
        raise KeyError("steps")

    job = request()
    assert runner.run_job(job.pk, lambda job: iter([write_and_fail]), clock=clock) is JobState.FAILED
    assert list_events() == []
    assert reload(job).failure.startswith("KeyError: 'steps' (tests/jobs/test_runner.py, line ")


@pytest.mark.django_db(transaction=True)
def test_job_is_retried_after_a_lost_database_connection(clock: Clock) -> None:
    def unlucky(job: Job) -> Iterator[Chunk]:
        yield partial(write, 1, 5)
        raise OperationalError("the connection was closed")

    job = request()
    assert runner.run_job(job.pk, unlucky, clock=clock) is None
    assert (reload(job).state, reload(job).lease_ends_at) == ("running", NOW)
    clock.advance(1)
    control.sweep_jobs(now=clock())
    assert reload(job).state == "queued"
    assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
    assert len(list_events()) == 5


def test_remaining_time_uses_the_pace_of_this_attempt(clock: Clock) -> None:
    estimates: list[float | None] = []

    def paced(job: Job) -> Iterator[Chunk]:
        estimates.append(reload(job).remaining_seconds(clock.now))
        for chunk in count(job):
            clock.advance(10)
            yield chunk
            estimates.append(reload(job).remaining_seconds(clock.now))

    job = request()
    assert (job.remaining_seconds(NOW), job.share_done()) == (None, None)
    runner.run_job(job.pk, paced, clock=clock)
    assert estimates == [None, 40, 30, 20, 10, 0]
    assert (reload(job).remaining_seconds(clock.now), reload(job).share_done()) == (None, 1.0)


def test_remaining_time_uses_bytes_before_the_total_is_known(clock: Clock) -> None:
    estimates: list[float | None] = []

    def looking(job: Job) -> Iterator[JobProgress]:
        for read in (0, 25, 100):
            clock.advance(5)
            yield JobProgress(0, result={"read": read, "size": 100})
            estimates.append(reload(job).remaining_seconds(clock.now))

    runner.run_job(request().pk, looking, clock=clock)
    assert estimates == [None, 30, 0]


def test_parallel_jobs_are_limited_and_the_next_one_is_published_again(clock: Clock) -> None:
    jobs = [request() for _ in range(runner.MAX_PARALLEL_JOBS + 1)]
    ended: list[JobState | None] = []

    def begin_the_next(job: Job) -> Iterator[JobProgress]:
        following = jobs.index(job) + 1
        if following < len(jobs):
            ended.append(runner.run_job(jobs[following].pk, begin_the_next, clock=clock))
        yield JobProgress(1)

    runner.run_job(jobs[0].pk, begin_the_next, clock=clock)
    assert ended == [None, *[JobState.DONE] * (runner.MAX_PARALLEL_JOBS - 1)]
    last = reload(jobs[-1])
    assert (last.state, last.published_at, last.attempt) == ("queued", None, 0)
    assert runner.run_job(last.pk, count, clock=clock) is JobState.DONE
