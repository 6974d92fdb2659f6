"""Requesting, canceling, retrying, and sweeping jobs."""

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


def make_job(state: str, **fields: object) -> Job:
    ended = {"ended_at": NOW} if state in {"done", "failed", "cancelled"} else {}
    lease = {"lease_ends_at": NOW, "started_at": NOW, "attempt": 1} if state == "running" else {}
    failure = {"failure": "It broke."} if state == "failed" else {}
    return Job.objects.create(
        **{
            "kind": "tests.count",
            "asked_at": NOW,
            "state": state,
            "published_at": NOW,
            **ended,
            **lease,
            **failure,
            **fields,
        }
    )


def reload(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def list_events() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("what", flat=True))


def test_request_creates_the_row_and_publishes_after_the_commit(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    ada = factories.make_user("ada")
    with django_capture_on_commit_callbacks() as callbacks:
        job = control.request_job(kind="tests.count", subject="project:3", arguments={"to": 5}, by=ada, now=NOW)
    assert len(callbacks) == 1
    event = Event.objects.get()
    assert (event.what, event.by, event.subject) == ("job.asked", ada.pk, f"job:{job.pk}")
    assert (job.state, job.arguments, job.asked_by, job.published_at) == ("queued", {"to": 5}, ada, NOW)


def test_own_jobs_of_the_platform_are_not_logged() -> None:
    control.request_job(kind="tests.count", by=None, now=NOW)
    assert list_events() == []


@pytest.mark.parametrize(("state", "after"), [("queued", "cancelled"), ("running", "running"), ("done", "done")])
def test_cancel_ends_a_queued_job_and_flags_a_running_one(state: str, after: str) -> None:
    job = make_job(state)
    for _ in range(2):
        control.cancel_job(job=job, by=factories.make_user(), now=NOW)
    assert (reload(job).state, reload(job).cancel_asked_at) == (after, None if state == "done" else NOW)
    assert list_events() == ([] if state == "done" else ["job.cancelled"])


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_retry_keeps_the_checkpoint(state: str) -> None:
    job = make_job(state, checkpoint={"at": 3}, done=3, fruitless_starts=5, cancel_asked_at=NOW)
    later = NOW + dt.timedelta(hours=1)
    control.retry_job(job=job, by=factories.make_user(), now=later)
    job = reload(job)
    assert (job.state, job.checkpoint, job.done, job.fruitless_starts) == ("queued", {"at": 3}, 3, 0)
    assert (job.cancel_asked_at, job.ended_at, job.published_at, job.failure) == (None, None, later, "")
    assert list_events() == ["job.retried"]


@pytest.mark.parametrize("state", ["queued", "running", "done"])
def test_retry_of_an_unfailed_job_is_refused(state: str) -> None:
    with pytest.raises(control.JobNotRetryable):
        control.retry_job(job=make_job(state), by=None, now=NOW)


def test_sweep_requeues_jobs_with_an_expired_lease() -> None:
    lost, alive = make_job("running"), make_job("running", lease_ends_at=NOW + dt.timedelta(seconds=9))
    control.sweep_jobs(now=NOW + dt.timedelta(seconds=1))
    assert (reload(lost).state, reload(lost).lease_ends_at) == ("queued", None)
    assert reload(alive).state == "running"


def test_sweep_ends_cancelled_jobs_with_an_expired_lease() -> None:
    job = make_job("running", cancel_asked_at=NOW)
    control.sweep_jobs(now=NOW + dt.timedelta(seconds=1))
    assert reload(job).state == "cancelled"


def test_sweep_fails_jobs_that_lost_too_many_runners() -> None:
    fourth, fifth = (
        make_job("running", fruitless_starts=4),
        make_job("running", fruitless_starts=5, failure="It broke."),
    )
    control.sweep_jobs(now=NOW + dt.timedelta(seconds=1))
    assert (reload(fourth).state, reload(fifth).state) == ("queued", "failed")
    assert "5" in reload(fifth).failure
    assert "It broke." in reload(fifth).failure


def test_failed_job_needs_a_reason() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make_job("failed", failure="")
