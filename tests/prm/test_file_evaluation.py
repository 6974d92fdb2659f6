"""A project's PRM is evaluated on a file: by the command, and by an upload on its page."""

import io
import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from events.models import Event
from jobs import runner
from jobs.models import Job, JobState
from labeling.models import Project
from people import members
from people.models import Role
from prm import benchmark_evaluation, file_evaluation, registry
from prm.models import PRM, FileEvaluation
from prm.registry import PRMIdentity
from tests import factories
from tests.prm import generation_project
from tests.prm.backends import scorer_servers
from tests.prm.test_evaluate_prm import write_records

pytestmark = [pytest.mark.django_db, pytest.mark.fault]


def make_prm(project: Project) -> PRM:
    prm = generation_project.run_generation(project).candidate
    assert prm is not None
    return prm


def log_in_engineer(project: Project) -> Client:
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ENGINEER, now=factories.NOW)
    client = Client()
    client.force_login(user)
    return client


def upload(client: Client, prm: PRM, content: bytes, name: str = "mine.jsonl") -> int:
    address = reverse("dashboard:evaluate_prm_on_file", args=[prm.project.slug, prm.version])
    return client.post(address, {"file": SimpleUploadedFile(name, content)}).status_code


def run_file_job() -> Job:
    job = Job.objects.get(kind=file_evaluation.KIND, state=JobState.QUEUED)
    runner.run_job(job.pk, file_evaluation.run_file_evaluation_job, clock=lambda: factories.NOW)
    job.refresh_from_db()
    return job


def test_uploaded_file_is_evaluated_and_its_figures_are_shown(tmp_path: Path) -> None:
    project = generation_project.make_project(labeled=60, unread=5)
    prm, client = make_prm(project), log_in_engineer(project)
    trained = project.problems.filter(traces__in=prm.trained_ids()).first()
    assert trained is not None
    known = json.dumps({"problem": trained.text, "steps": ["Then we add: 1 + 1 = 2."], "label": -1})
    records = write_records(tmp_path / "mine.jsonl").read_text()
    assert upload(client, prm, f"{records}\n{known}".encode()) == 302
    page = client.get(reverse("dashboard:prm", args=[project.slug, prm.version])).content.decode()
    assert 'hx-select="#file-evaluations"' in page
    job = run_file_job()
    assert job.state == JobState.DONE
    assert not Path(job.arguments["path"]).exists()
    row = FileEvaluation.objects.get(prm=prm)
    assert row.figures["counts"]["traces"] == 41
    assert row.figures["problems_in_training"] == 1
    assert row.threshold == prm.threshold
    assert row.evaluated_by == job.asked_by
    page = client.get(reverse("dashboard:prm", args=[project.slug, prm.version])).content.decode()
    assert 'data-file="mine.jsonl"' in page
    assert 'hx-select="#file-evaluations"' not in page
    assert Event.objects.filter(project=project.pk, what="prm.evaluated_on_file").count() == 1


def test_invalid_file_fails_with_its_place_on_the_page() -> None:
    project = generation_project.make_project(labeled=40, unread=5)
    prm, client = make_prm(project), log_in_engineer(project)
    assert upload(client, prm, b"") == 422
    assert upload(client, prm, b'{"problem": "?", "steps": ["a"], "label": 9}') == 302
    job = run_file_job()
    assert job.state == JobState.FAILED
    page = client.get(reverse("dashboard:prm", args=[project.slug, prm.version])).content.decode()
    assert 'role="alert"' in page
    assert not FileEvaluation.objects.exists()


def test_prm_with_pushed_scores_is_refused(tmp_path: Path) -> None:
    project = factories.make_project()
    identity = PRMIdentity("pushed", "m")
    prm = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    assert upload(log_in_engineer(project), prm, b"{}") == 422
    path = write_records(tmp_path / "a.jsonl")
    with pytest.raises(CommandError) as refused:
        call_command("evaluate_prm", "--project", project.slug, "--prm", "1", "--processbench", str(path))
    assert isinstance(refused.value.__cause__, file_evaluation.NotEvaluable)
    assert not Job.objects.exists()


def test_command_gives_the_figures_of_the_backend_and_saves_them(tmp_path: Path) -> None:
    project = factories.make_project()
    path = write_records(tmp_path / "a.jsonl", n=150)
    with scorer_servers.running_scorer(scorer_servers.FakeVllmServer()) as address:
        identity = PRMIdentity("vllm", "m", address=address)
        prm = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
        out = io.StringIO()
        options = ("--project", project.slug, "--prm", "1", "--processbench", str(path))
        call_command("evaluate_prm", *options, "--json", stdout=out)
        expected = benchmark_evaluation.evaluate_backend(
            backend=registry.load_backend(prm),
            semantics=prm.semantics,
            judged=benchmark_evaluation.read_benchmark([path]),
            threshold=prm.threshold,
        )
    figures = json.loads(out.getvalue())
    assert figures == {**expected, "problems_in_training": None}  # its training set is not stated
    assert FileEvaluation.objects.get(prm=prm).figures == figures
    for more in (("--prm", "7"), ("--train", str(path)), ("--threshold", "0.3")):
        with pytest.raises(CommandError):
            call_command("evaluate_prm", *options, *more)
    with pytest.raises(CommandError):  # none is current
        call_command("evaluate_prm", "--project", project.slug, "--processbench", str(path))
    assert figures["auc"] is not None
