"""What people do with jobs, and what the sweep does for them."""

import datetime as dt

import pytest
from django.db import IntegrityError, transaction
from pytest_django import DjangoCaptureOnCommitCallbacks

from events.models import Event
from jobs import control
from jobs.models import Job
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


def job_in(state: str, **fields: object) -> Job:
    ended = {"ended_at": NOW} if state in {"done", "failed", "cancelled"} else {}
    held = {"lease_ends_at": NOW, "started_at": NOW, "attempt": 1} if state == "running" else {}
    why = {"failure": "It broke."} if state == "failed" else {}
    return Job.objects.create(
        **{
            "kind": "tests.count",
            "asked_at": NOW,
            "state": state,
            "published_at": NOW,
            **ended,
            **held,
            **why,
            **fields,
        }
    )


def fresh(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def logged() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("what", flat=True))


def test_ask_makes_the_row_and_publishes_after_the_commit(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    ada = factories.make_user("ada")
    with django_capture_on_commit_callbacks() as callbacks:
        job = control.request_job(kind="tests.count", subject="project:3", arguments={"to": 5}, by=ada, now=NOW)
    assert len(callbacks) == 1
    event = Event.objects.get()
    assert (event.what, event.by, event.subject) == ("job.asked", ada.pk, f"job:{job.pk}")
    assert (job.state, job.arguments, job.asked_by, job.published_at) == ("queued", {"to": 5}, ada, NOW)


def test_ask_leaves_no_event_for_the_platforms_own_work() -> None:
    control.request_job(kind="tests.count", by=None, now=NOW)
    assert logged() == []


@pytest.mark.parametrize(("state", "after"), [("queued", "cancelled"), ("running", "running"), ("done", "done")])
def test_cancel_ends_what_waits_and_asks_what_runs(state: str, after: str) -> None:
    job = job_in(state)
    for _ in range(2):
        control.cancel_job(job=job, by=factories.make_user(), now=NOW)
    assert (fresh(job).state, fresh(job).cancel_asked_at) == (after, None if state == "done" else NOW)
    assert logged() == ([] if state == "done" else ["job.cancelled"])


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_retry_asks_again_and_keeps_the_checkpoint(state: str) -> None:
    job = job_in(state, checkpoint={"at": 3}, done=3, fruitless_starts=5, cancel_asked_at=NOW)
    later = NOW + dt.timedelta(hours=1)
    control.retry_job(job=job, by=factories.make_user(), now=later)
    job = fresh(job)
    assert (job.state, job.checkpoint, job.done, job.fruitless_starts) == ("queued", {"at": 3}, 3, 0)
    assert (job.cancel_asked_at, job.ended_at, job.published_at, job.failure) == (None, None, later, "")
    assert logged() == ["job.retried"]


@pytest.mark.parametrize("state", ["queued", "running", "done"])
def test_retry_refuses_work_that_did_not_fail(state: str) -> None:
    with pytest.raises(control.JobNotRetryable):
        control.retry_job(job=job_in(state), by=None, now=NOW)


def test_sweep_puts_expired_work_back_into_the_queue() -> None:
    lost, alive = job_in("running"), job_in("running", lease_ends_at=NOW + dt.timedelta(seconds=9))
    control.sweep_jobs(now=NOW + dt.timedelta(seconds=1))
    assert (fresh(lost).state, fresh(lost).lease_ends_at) == ("queued", None)
    assert fresh(alive).state == "running"


def test_sweep_ends_expired_work_that_somebody_cancelled() -> None:
    job = job_in("running", cancel_asked_at=NOW)
    control.sweep_jobs(now=NOW + dt.timedelta(seconds=1))
    assert fresh(job).state == "cancelled"


def test_sweep_gives_up_on_work_that_wears_out_its_runners() -> None:
    tired, worn = job_in("running", fruitless_starts=4), job_in("running", fruitless_starts=5, failure="It broke.")
    control.sweep_jobs(now=NOW + dt.timedelta(seconds=1))
    assert (fresh(tired).state, fresh(worn).state) == ("queued", "failed")
    assert "stopped 5 times" in fresh(worn).failure
    assert "It broke." in fresh(worn).failure


def test_failed_work_says_why() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        job_in("failed", failure="")
