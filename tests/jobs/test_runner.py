"""A job survives whatever happens to its runner, and a chunk is kept once."""

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


def asked(**arguments: object) -> Job:
    return control.request_job(kind="tests.count", subject="project:1", arguments=arguments, by=None, now=NOW)


def write(number: int, total: int, now: dt.datetime) -> JobProgress:
    """A chunk: one row, and how far that is."""
    audit_log.log_event(what=f"chunk {number}", by=None, now=now)
    return JobProgress(number, total, {"at": number}, {"last": number})


def count(job: Job, *, to: int = 5) -> Iterator[Chunk]:
    for number in range(job.checkpoint.get("at", 0) + 1, to + 1):
        yield partial(write, number, to)


def written() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("what", flat=True))


def fresh(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def test_run_does_every_chunk_once_and_ends(clock: Clock) -> None:
    job = asked()
    assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
    job = fresh(job)
    assert written() == [f"chunk {n}" for n in range(1, 6)]
    assert (job.state, job.done, job.total, job.attempt) == ("done", 5, 5, 1)
    assert (job.checkpoint, job.result, job.ended_at, job.lease_ends_at) == ({"at": 5}, {"last": 5}, NOW, None)
    assert runner.run_job(job.pk, count, clock=clock) is None
    assert len(written()) == 5


def test_run_ignores_a_job_that_is_not_there(clock: Clock) -> None:
    assert runner.run_job(404, count, clock=clock) is None


def test_run_takes_progress_without_a_write(clock: Clock) -> None:
    job = asked()
    runner.run_job(job.pk, lambda job: iter([JobProgress(1), JobProgress(2, 2, result={"file": "a"})]), clock=clock)
    assert (fresh(job).done, fresh(job).total, fresh(job).result) == (2, 2, {"file": "a"})


def test_run_leaves_a_job_that_another_runner_is_at(clock: Clock) -> None:
    def busy(job: Job) -> Iterator[Chunk]:
        assert runner.run_job(job.pk, count, clock=clock) is None
        yield from count(job)

    job = asked()
    assert runner.run_job(job.pk, busy, clock=clock) is JobState.DONE
    assert (len(written()), fresh(job).attempt) == (5, 1)


def test_run_goes_on_from_the_checkpoint_after_a_crash(clock: Clock) -> None:
    class Killed(BaseException):
        """As sudden as a signal: nothing of the runner gets to run."""

    def dying(job: Job) -> Iterator[Chunk]:
        for chunk in count(job):
            yield chunk
            if fresh(job).done == 3:
                raise Killed

    job = asked()
    with pytest.raises(Killed):
        runner.run_job(job.pk, dying, clock=clock)
    assert (fresh(job).state, fresh(job).done) == ("running", 3)
    assert runner.run_job(job.pk, count, clock=clock) is None
    clock.advance(21)
    assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
    assert written() == [f"chunk {n}" for n in range(1, 6)]
    assert (fresh(job).attempt, fresh(job).done_before) == (2, 3)


def test_run_keeps_nothing_after_its_lease_was_lost(clock: Clock) -> None:
    """A runner that slept through its lease finds another at the job: its chunk goes, the other's stays."""

    def slow(job: Job) -> Iterator[Chunk]:
        chunks = count(job)
        yield next(chunks)
        clock.advance(21)
        assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
        yield from chunks

    job = asked()
    assert runner.run_job(job.pk, slow, clock=clock) is None
    assert written() == [f"chunk {n}" for n in range(1, 6)]
    assert (fresh(job).state, fresh(job).attempt) == ("done", 2)


def test_run_keeps_nothing_of_a_chunk_whose_job_was_given_back(clock: Clock) -> None:
    def slow(job: Job) -> Iterator[Chunk]:
        clock.advance(21)
        control.sweep_jobs(now=clock())
        yield partial(write, 1, 1)

    job = asked()
    assert runner.run_job(job.pk, slow, clock=clock) is None
    assert (written(), fresh(job).state) == ([], "queued")


def test_run_renews_its_lease_with_each_chunk(clock: Clock) -> None:
    def steady(job: Job) -> Iterator[Chunk]:
        for chunk in count(job):
            clock.advance(15)
            yield chunk
            assert fresh(job).lease_ends_at == clock.now + LEASE
            control.sweep_jobs(now=clock())

    job = asked()
    assert runner.run_job(job.pk, steady, clock=clock, lease=LEASE) is JobState.DONE
    assert fresh(job).attempt == 1


def test_run_ends_after_the_chunk_when_somebody_cancels(clock: Clock) -> None:
    def cancelled(job: Job) -> Iterator[Chunk]:
        chunks = count(job)
        yield next(chunks)
        control.cancel_job(job=job, by=None, now=clock())
        yield from chunks

    job = asked()
    assert runner.run_job(job.pk, cancelled, clock=clock) is JobState.CANCELLED
    assert (written(), fresh(job).state, fresh(job).ended_at) == (["chunk 1"], "cancelled", NOW)


def test_run_says_why_it_failed_and_keeps_what_was_done(clock: Clock) -> None:
    def failing(job: Job) -> Iterator[Chunk]:
        yield partial(write, 1, 2)
        raise failures.JobFailed("Line 2 has no text.")

    job = asked()
    assert runner.run_job(job.pk, failing, clock=clock) is JobState.FAILED
    assert (written(), fresh(job).failure) == (["chunk 1"], "Line 2 has no text.")
    control.retry_job(job=job, by=None, now=NOW)
    assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
    assert (len(written()), fresh(job).failure) == (5, "")


def test_run_undoes_the_chunk_that_failed(clock: Clock) -> None:
    def write_and_fail(now: dt.datetime) -> JobProgress:
        write(1, 1, now)
        raise KeyError("steps")

    job = asked()
    assert runner.run_job(job.pk, lambda job: iter([write_and_fail]), clock=clock) is JobState.FAILED
    assert written() == []
    assert fresh(job).failure.startswith("KeyError: 'steps' (tests/jobs/test_runner.py, line ")


@pytest.mark.django_db(transaction=True)
def test_run_sets_the_job_aside_while_the_database_is_away(clock: Clock) -> None:
    def unlucky(job: Job) -> Iterator[Chunk]:
        yield partial(write, 1, 5)
        raise OperationalError("the connection was closed")

    job = asked()
    assert runner.run_job(job.pk, unlucky, clock=clock) is None
    assert (fresh(job).state, fresh(job).lease_ends_at) == ("running", NOW)
    clock.advance(1)
    control.sweep_jobs(now=clock())
    assert fresh(job).state == "queued"
    assert runner.run_job(job.pk, count, clock=clock) is JobState.DONE
    assert len(written()) == 5


def test_remaining_seconds_go_by_the_pace_of_this_attempt(clock: Clock) -> None:
    seen: list[float | None] = []

    def paced(job: Job) -> Iterator[Chunk]:
        seen.append(fresh(job).remaining_seconds(clock.now))
        for chunk in count(job):
            clock.advance(10)
            yield chunk
            seen.append(fresh(job).remaining_seconds(clock.now))

    job = asked()
    assert (job.remaining_seconds(NOW), job.share_done()) == (None, None)
    runner.run_job(job.pk, paced, clock=clock)
    assert seen == [None, 40, 30, 20, 10, 0]
    assert (fresh(job).remaining_seconds(clock.now), fresh(job).share_done()) == (None, 1.0)


def test_remaining_seconds_go_by_bytes_before_there_is_a_total(clock: Clock) -> None:
    seen: list[float | None] = []

    def looking(job: Job) -> Iterator[JobProgress]:
        for read in (0, 25, 100):
            clock.advance(5)
            yield JobProgress(0, result={"read": read, "size": 100})
            seen.append(fresh(job).remaining_seconds(clock.now))

    runner.run_job(asked().pk, looking, clock=clock)
    assert seen == [None, 30, 0]


def test_run_leaves_room_for_short_news_and_offers_the_job_again(clock: Clock) -> None:
    jobs = [asked() for _ in range(runner.MAX_PARALLEL_JOBS + 1)]
    ended: list[JobState | None] = []

    def begin_the_next(job: Job) -> Iterator[JobProgress]:
        following = jobs.index(job) + 1
        if following < len(jobs):
            ended.append(runner.run_job(jobs[following].pk, begin_the_next, clock=clock))
        yield JobProgress(1)

    runner.run_job(jobs[0].pk, begin_the_next, clock=clock)
    assert ended == [None, *[JobState.DONE] * (runner.MAX_PARALLEL_JOBS - 1)]
    last = fresh(jobs[-1])
    assert (last.state, last.published_at, last.attempt) == ("queued", None, 0)
    assert runner.run_job(last.pk, count, clock=clock) is JobState.DONE
