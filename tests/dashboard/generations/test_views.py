"""Generation and PRM pages: content, actions and refusals."""

import datetime as dt
import html

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.models import Job
from labeling.models import Project, TraceDraw
from people import members
from people.models import Role
from prm import generations, loop_rules, registry
from prm.models import PRM, Generation
from prm.registry import PRMIdentity
from tests import factories
from tests.prm import generation_project

pytestmark = pytest.mark.django_db


def log_in_member(project: Project, role: Role = Role.ENGINEER) -> Client:
    user = factories.make_user()
    members.add_member(project=project, user=user, role=role, now=factories.NOW)
    client = Client()
    client.force_login(user)
    return client


def address(project: Project, name: str = "generations", **more: object) -> str:
    return reverse(f"dashboard:{name}", kwargs={"slug": project.slug, **more})


def test_generation_is_started_followed_and_listed_in_the_timeline() -> None:
    project = generation_project.make_project()
    client = log_in_member(project)
    response = client.get(address(project))
    assert response.context["next_number"] == 1
    assert response.context["freshness"].prm is None
    assert client.post(address(project, "start_generation")).status_code == 302
    assert 'hx-trigger="every 1s"' in client.get(address(project)).content.decode()
    assert "HX-Refresh" not in client.get(address(project, "generation_progress")).headers
    assert client.post(address(project, "start_generation")).status_code == 422
    generation_project.run_jobs()
    ended = client.get(address(project, "generation_progress"))
    assert ended.headers["HX-Refresh"] == "true"
    assert "hx-trigger" not in ended.content.decode()
    response = client.get(address(project))
    assert Generation.objects.get(project=project).gate["alarms"] == []
    assert [row.is_current for row in response.context["timeline"]] == [True]
    assert response.context["next_number"] == 2
    assert not response.context["cost"]["is_fitted"]
    assert response.context["cost"]["n"] == 0
    n_drawn = TraceDraw.objects.filter(project=project).count()
    assert f'data-unlabeled="{n_drawn}"' in response.content.decode()
    assert client.get(address(project, "prm", version=1)).status_code == 200
    drawn = TraceDraw.objects.filter(project=project).first()
    assert drawn is not None
    trace = client.get(address(project, "trace", trace=drawn.trace_id)).content.decode()
    assert 'id="why"' in trace


def test_progress_estimates_the_time_left_for_scoring() -> None:
    project = generation_project.make_project(labeled=60, unread=10)
    generation = generations.start_generation(project=project, by=None, now=factories.NOW)
    generation_project.run_jobs(until=generations.SCORE)
    (job,) = [each for each in generations.jobs_of_generation(generation) if each.kind == generations.SCORE]
    began = timezone.now() - dt.timedelta(minutes=10)
    running = {"state": "running", "attempt": 1, "started_at": began, "lease_ends_at": timezone.now()}
    Job.objects.filter(pk=job.pk).update(**running, done=20, total=70)
    response = log_in_member(project).get(address(project, "generation_progress"))
    assert response.context["progress"].time_left == "about 25 min"


def test_page_shows_progress_and_failure_of_scoring() -> None:
    project = generation_project.make_project(labeled=0, unread=4)
    identity = PRMIdentity("vllm", "m", address="http://127.0.0.1:1")
    prm = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    registry.make_current(prm=prm, by=None, now=factories.NOW)
    client = log_in_member(project)
    assert client.post(address(project, "score_stale_traces")).status_code == 302
    assert client.post(address(project, "score_stale_traces")).status_code == 422  # it is being scored
    page = client.get(address(project)).content.decode()
    assert 'hx-select="#rescoring"' in page
    assert 'id="score"' not in page
    Job.objects.update(state="failed", failure="No answer.", ended_at=factories.NOW)
    page = client.get(address(project)).content.decode()
    assert "No answer." in page
    assert 'hx-select="#rescoring"' not in page
    assert 'id="score"' in page


def test_failed_generation_shows_its_failure_and_can_be_retried() -> None:
    project = generation_project.make_project(labeled=0, unread=5)
    client = log_in_member(project)
    client.post(address(project, "start_generation"))
    generation_project.run_jobs()
    response = client.get(address(project))
    failed = response.context["progress"].failed
    assert failed.failure in html.unescape(response.content.decode())
    assert address(project, "retry_generation", number=1) in response.content.decode()
    generation_project.import_records(project, labeled=60, unread=0, seed=3)
    assert client.post(address(project, "retry_generation", number=1)).status_code == 302
    assert client.post(address(project, "stop_generation", number=1)).status_code == 302
    assert Generation.objects.get(project=project).stage == "stopped"


def test_prm_is_registered_made_current_and_rolled_back() -> None:
    project = factories.make_project()
    client = log_in_member(project)
    data = {"backend": "vllm", "model": "Qwen", "address": "http://127.0.0.1:1", "semantics": "hazard", "style": "qwen"}
    for _ in range(2):
        assert client.post(address(project, "register_prm"), {**data, "secret": "s3cret"}).status_code == 302
    prm = PRM.objects.get(project=project, version=1)
    assert b"s3cret" not in bytes(prm.secret or b"")
    assert client.post(address(project, "make_prm_current", version=1)).status_code == 302
    assert client.post(address(project, "make_prm_current", version=2)).status_code == 302
    assert client.post(address(project, "roll_back_prm")).status_code == 302
    assert registry.current_prm(project.pk) == prm
    assert client.post(address(project, "roll_back_prm")).status_code == 422
    assert client.post(address(project, "register_prm"), {**data, "address": "file:///x"}).status_code == 422
    assert client.post(address(project, "register_prm"), {**data, "backend": "http"}).status_code == 422
    assert client.post(address(project, "register_prm"), {**data, "secret": "ключ"}).status_code == 422


def test_saved_rules_end_the_fallback_to_random() -> None:
    project = factories.make_project()
    loop_rules.fall_back_to_random(project=project, now=factories.NOW)
    client = log_in_member(project)
    assert "data-fell-back" in client.get(address(project)).content.decode()
    data = {"acquisition": "margin", "batch_size": 9, "temperature": 0.2, "domain_quota": 0.5}
    assert client.post(address(project, "change_selection_rules"), data).status_code == 302
    rules = loop_rules.load_loop_rules(project)
    assert rules.acquisition == "margin"
    assert rules.batch_size == 9
    assert rules.fell_back_at is None
    for odd in ({"temperature": 0}, {"every_n_submissions": 2**31}, {"every_n_submissions": "9" * 19}):
        assert client.post(address(project, "change_selection_rules"), {**data, **odd}).status_code == 422


def test_custom_acquisition_of_the_command_stays_a_choice_on_the_page() -> None:
    project = generation_project.make_project(labeled=40, unread=10)
    own = "tests.prm.selection.test_acquisitions:by_number"
    call_command("run_generation", "--project", project.slug, "--acquisition", own)
    assert Generation.objects.get(project=project).acquisition == own
    client = log_in_member(project)
    assert f'<option value="{own}" selected>' in client.get(address(project)).content.decode()
    data = {"acquisition": own, "batch_size": 9, "temperature": 0.2, "domain_quota": 0.5}
    assert client.post(address(project, "change_selection_rules"), data).status_code == 302
    assert loop_rules.load_loop_rules(project).acquisition == own
    assert (
        client.post(address(project, "change_selection_rules"), {**data, "acquisition": "os:remove"}).status_code == 422
    )
    with pytest.raises(CommandError, match="nothing:like_this"):
        call_command("run_generation", "--project", project.slug, "--acquisition", "nothing:like_this")


def test_reviewer_sees_no_scores_of_a_trace() -> None:
    project = generation_project.make_project(labeled=60, unread=10)
    generation_project.run_generation(project)
    drawn = TraceDraw.objects.filter(project=project).first()
    assert drawn is not None
    page = log_in_member(project, Role.REVIEWER).get(address(project, "trace", trace=drawn.trace_id)).content.decode()
    assert 'id="why"' not in page
