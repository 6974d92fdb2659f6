"""The jobs command."""

import pytest
from django.core.management import CommandError, call_command

from jobs import control
from jobs.models import Job
from tests.factories import NOW

pytestmark = pytest.mark.django_db


def make_job(state: str, **fields: object) -> Job:
    return Job.objects.create(**{"kind": "tests.count", "asked_at": NOW, "state": state, **fields})


def test_unfinished_jobs_are_listed_first_with_progress_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    failed = make_job("failed", failure="Line 3 has no text.", ended_at=NOW, done=2, total=9, subject="project:1")
    queued = make_job("queued")
    call_command("jobs")
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == [str(queued.pk), "queued", "tests.count", "0/?"]
    assert second.split()[:5] == [str(failed.pk), "failed", "tests.count", "project:1", "2/9"]
    assert second.endswith("Line 3 has no text.")


def test_jobs_are_retried_and_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    failed, queued = make_job("failed", failure="It broke.", ended_at=NOW), make_job("queued")
    call_command("jobs", retry=failed.pk, cancel=queued.pk)
    states = dict(Job.objects.values_list("pk", "state"))
    assert states == {failed.pk: "queued", queued.pk: "cancelled"}
    with pytest.raises(CommandError) as refused:
        call_command("jobs", retry=failed.pk)
    assert isinstance(refused.value.__cause__, control.JobNotRetryable)
    with pytest.raises(CommandError, match="404"):
        call_command("jobs", cancel=404)
