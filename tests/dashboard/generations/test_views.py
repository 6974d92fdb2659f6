"""Generations and PRMs on their pages: what is shown, what a press does, what is refused in words."""

import datetime as dt

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


def come_in(project: Project, role: Role = Role.ENGINEER) -> Client:
    user = factories.make_user()
    members.add_member(project=project, user=user, role=role, now=factories.NOW)
    client = Client()
    client.force_login(user)
    return client


def address(project: Project, name: str = "generations", **more: object) -> str:
    return reverse(f"dashboard:{name}", kwargs={"slug": project.slug, **more})


def test_page_follows_a_generation_from_the_button_to_its_line_in_the_timeline() -> None:
    project = generation_project.make_project()
    client = come_in(project)
    page = client.get(address(project)).content.decode()
    assert "Start generation 1" in page
    assert "No PRM is current yet" in page
    assert client.post(address(project, "start_generation")).status_code == 302
    assert "data-follow" in client.get(address(project)).content.decode()
    assert client.post(address(project, "start_generation")).status_code == 422
    generation_project.run_jobs()
    assert "data-ended" in client.get(address(project, "generation_progress")).content.decode()
    page = client.get(address(project)).content.decode()
    assert Generation.objects.get(project=project).gate["alarms"] == []
    assert "first" in page.partition("Timeline")[2]
    assert "Start generation 2" in page
    assert "starting values: 0 readings were timed" in page
    assert f"{TraceDraw.objects.filter(project=project).count()} unread" in page
    assert client.get(address(project, "prm", version=1)).status_code == 200
    drawn = TraceDraw.objects.filter(project=project).first()
    assert drawn is not None
    trace = client.get(address(project, "trace", trace=drawn.trace_id)).content.decode()
    assert "of batch 1" in trace
    assert "raters do not see it" in trace
    assert ">unsure<" in trace


def test_page_says_how_long_scoring_still_takes() -> None:
    project = generation_project.make_project(labelled=60, unread=10)
    generation = generations.start_generation(project=project, by=None, now=factories.NOW)
    generation_project.run_jobs(until=generations.SCORE)
    (job,) = [each for each in generations.jobs_of_generation(generation) if each.kind == generations.SCORE]
    began = timezone.now() - dt.timedelta(minutes=10)
    running = {"state": "running", "attempt": 1, "started_at": began, "lease_ends_at": timezone.now()}
    Job.objects.filter(pk=job.pk).update(**running, done=20, total=70)
    page = come_in(project).get(address(project, "generation_progress")).content.decode()
    assert "Scoring takes about 25 min more." in page


def test_page_says_why_scores_are_stale_and_how_far_scoring_is() -> None:
    project = generation_project.make_project(labelled=0, unread=4)
    identity = PRMIdentity("vllm", "m", address="http://127.0.0.1:1")
    prm = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    registry.make_current(prm=prm, by=None, now=factories.NOW)
    client = come_in(project)
    assert client.post(address(project, "score_stale_traces")).status_code == 302
    assert client.post(address(project, "score_stale_traces")).status_code == 422  # it is being scored
    page = client.get(address(project)).content.decode()
    assert "Scoring is at 0 %." in page
    assert "Score them now" not in page
    Job.objects.update(state="failed", failure="Nobody answered.", ended_at=factories.NOW)
    page = client.get(address(project)).content.decode()
    assert "Nobody answered. The older scores stay, and the queue goes on as it was." in page
    assert "Score them now" in page


def test_failed_generation_says_why_and_can_be_tried_again() -> None:
    project = generation_project.make_project(labelled=0, unread=5)
    client = come_in(project)
    client.post(address(project, "start_generation"))
    generation_project.run_jobs()
    page = client.get(address(project)).content.decode()
    assert "Label more traces" in page
    assert "Try again" in page
    generation_project.import_records(project, labelled=60, unread=0, seed=3)
    assert client.post(address(project, "retry_generation", number=1)).status_code == 302
    assert client.post(address(project, "stop_generation", number=1)).status_code == 302
    assert Generation.objects.get(project=project).stage == "stopped"


def test_prm_is_registered_made_current_and_rolled_back() -> None:
    project = factories.make_project()
    client = come_in(project)
    told = {"backend": "vllm", "model": "Qwen", "address": "http://127.0.0.1:1", "semantics": "hazard", "style": "qwen"}
    for _ in range(2):
        assert client.post(address(project, "register_prm"), {**told, "secret": "s3cret"}).status_code == 302
    prm = PRM.objects.get(project=project, version=1)
    assert b"s3cret" not in bytes(prm.secret or b"")
    assert client.post(address(project, "make_prm_current", version=1)).status_code == 302
    assert client.post(address(project, "make_prm_current", version=2)).status_code == 302
    assert client.post(address(project, "roll_back_prm")).status_code == 302
    assert registry.current_prm(project.pk) == prm
    assert client.post(address(project, "roll_back_prm")).status_code == 422
    assert client.post(address(project, "register_prm"), {**told, "address": "file:///x"}).status_code == 422
    assert client.post(address(project, "register_prm"), {**told, "backend": "http"}).status_code == 422
    assert client.post(address(project, "register_prm"), {**told, "secret": "ключ"}).status_code == 422


def test_rules_are_kept_and_end_a_fall_back() -> None:
    project = factories.make_project()
    loop_rules.fall_back_to_random(project=project, now=factories.NOW)
    client = come_in(project)
    assert "chosen at random since" in client.get(address(project)).content.decode()
    told = {"acquisition": "margin", "batch_size": 9, "temperature": 0.2, "domain_quota": 0.5}
    assert client.post(address(project, "change_selection_rules"), told).status_code == 302
    found = loop_rules.load_loop_rules(project)
    assert (found.acquisition, found.batch_size, found.fell_back_at) == ("margin", 9, None)
    for odd in ({"temperature": 0}, {"every_n_submissions": 2**31}, {"every_n_submissions": "9" * 19}):
        assert client.post(address(project, "change_selection_rules"), {**told, **odd}).status_code == 422


def test_acquisition_of_ones_own_is_chosen_by_the_command_and_kept_by_the_page() -> None:
    project = generation_project.make_project(labelled=40, unread=10)
    own = "tests.prm.selection.test_acquisitions:by_number"
    call_command("run_generation", "--project", project.slug, "--acquisition", own)
    assert Generation.objects.get(project=project).acquisition == own
    client = come_in(project)
    assert f'<option value="{own}" selected>' in client.get(address(project)).content.decode()
    told = {"acquisition": own, "batch_size": 9, "temperature": 0.2, "domain_quota": 0.5}
    assert client.post(address(project, "change_selection_rules"), told).status_code == 302
    assert loop_rules.load_loop_rules(project).acquisition == own
    assert (
        client.post(address(project, "change_selection_rules"), {**told, "acquisition": "os:remove"}).status_code == 422
    )
    with pytest.raises(CommandError, match="nothing:like_this"):
        call_command("run_generation", "--project", project.slug, "--acquisition", "nothing:like_this")


def test_reviewer_sees_no_scores_of_a_trace() -> None:
    project = generation_project.make_project(labelled=60, unread=10)
    generation_project.run_generation(project)
    drawn = TraceDraw.objects.filter(project=project).first()
    assert drawn is not None
    page = come_in(project, Role.REVIEWER).get(address(project, "trace", trace=drawn.trace_id)).content.decode()
    assert "Why it is read" not in page
