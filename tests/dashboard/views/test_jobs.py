"""The jobs of a project, and of no other project."""

import datetime as dt
import inspect

import pytest
from celery import current_app
from django.test import Client
from django.urls import reverse

from dashboard.views import jobs
from jobs.models import Job, JobState
from notices import outbox
from prm import generations, registry
from prm.registry import PRMIdentity
from tests import factories
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def cast(client: Client, personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    client.force_login(cast.engineer)
    return cast


def job(cast: Personas, **fields: object) -> Job:
    return Job.objects.create(kind="labeling.bring_in", subject=f"project:{cast.project.pk}", asked_at=NOW, **fields)


def failed(cast: Personas) -> Job:
    return job(cast, state="failed", failure="The file ended early.", started_at=NOW, ended_at=NOW)


def test_running_job_shows_its_share_and_failed_job_its_reason(client: Client, cast: Personas) -> None:
    job(cast, state="running", started_at=NOW, lease_ends_at=NOW + dt.timedelta(days=9000), done=40, total=80)
    failed(cast)
    Job.objects.create(kind="elsewhere.work", subject="project:999999", asked_at=NOW)
    response = client.get(reverse("dashboard:jobs", args=[cast.project.slug]))
    page = response.content.decode()
    assert [each.percent for each in response.context["jobs"]] == [None, 50]
    assert "The file ended early." in page
    assert 'hx-trigger="every 3s"' in page
    assert "elsewhere.work" not in page


def test_every_kind_of_job_has_a_label() -> None:
    current_app.loader.import_default_modules()
    kinds = {
        name
        for name, task in current_app.tasks.items()
        if list(inspect.signature(task.run).parameters) == ["job_id"] and not name.startswith("tests.")
    }
    assert len(kinds) > 10
    assert kinds - {outbox.KIND} == set(jobs.JOB_LABELS)  # deliveries of notices are listed with the webhooks


def test_job_of_a_generation_is_listed_without_actions(client: Client, cast: Personas) -> None:
    prm = registry.register_prm(project=cast.project, identity=PRMIdentity("pushed", "m"), by=None, now=NOW)
    generation = generations.start_generation(project=cast.project, by=cast.lead, now=NOW, candidate=prm)
    ours = Job.objects.create(kind="prm.score", subject=f"prm:{prm.pk}", asked_at=NOW)
    Job.objects.create(kind="elsewhere.work", subject=f"prm:{prm.pk + 1}", asked_at=NOW)
    page = client.get(reverse("dashboard:jobs", args=[cast.project.slug])).content.decode()
    assert all(f'id="job-{job.pk}"' in page for job in Job.objects.exclude(kind="elsewhere.work"))
    assert "elsewhere.work" not in page
    addresses = {job.pk: reverse("dashboard:cancel_job", args=[cast.project.slug, job.pk]) for job in Job.objects.all()}
    (part,) = generations.jobs_of_generation(generation)
    assert addresses[ours.pk] in page
    assert addresses[part.pk] not in page
    assert client.post(addresses[part.pk]).status_code == 404


def test_failed_job_is_retried_and_cancelled(client: Client, cast: Personas) -> None:
    found = failed(cast)
    client.post(reverse("dashboard:retry_job", args=[cast.project.slug, found.pk]))
    found.refresh_from_db()
    assert found.state == JobState.QUEUED
    client.post(reverse("dashboard:cancel_job", args=[cast.project.slug, found.pk]))
    found.refresh_from_db()
    assert found.state == JobState.CANCELLED


@pytest.mark.parametrize("name", ["dashboard:retry_job", "dashboard:cancel_job"])
def test_job_of_another_project_is_not_found(name: str, client: Client, cast: Personas) -> None:
    other = Job.objects.create(kind="x", subject="project:999999", asked_at=NOW)
    assert client.post(reverse(name, args=[cast.project.slug, other.pk])).status_code == 404
