"""Generation and PRM pages: content, actions and refusals."""

import datetime as dt
import html
import re

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.models import Job
from labeling.models import Project, TraceDraw
from people import members
from people.models import Role
from prm import generations, registry
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


@pytest.mark.fault
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
    assert [row["is_current"] for row in response.context["timeline"]] == [True]
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


@pytest.mark.fault
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


@pytest.mark.fault
def test_prm_is_registered_made_current_and_rolled_back() -> None:
    project = factories.make_project()
    client = log_in_member(project)
    data = {"backend": "vllm", "model": "Qwen", "address": "http://127.0.0.1:1", "semantics": "hazard", "style": "qwen"}
    for _ in range(2):
        assert client.post(address(project, "register_prm"), {**data, "secret": "s3cret"}).status_code == 302
    prm = PRM.objects.get(project=project, version=1)
    assert b"s3cret" not in bytes(prm.secret or b"")
    for version in (1, 2):
        current = address(project, "make_prm_current", version=version)
        asked = client.post(current)
        assert asked.status_code == 200
        page = asked.content.decode()
        assert re.findall(r'data-concern="(\w+)"', page) == ["unevaluated", "unreachable"]
        assert 'id="reason_error"' not in page
        refused = client.post(current, {"confirmed": "yes", "reason": " "})
        assert refused.status_code == 422
        assert 'id="reason_error"' in refused.content.decode()
        assert registry.current_prm(project.pk) != PRM.objects.get(project=project, version=version)
        assert client.post(current, {"confirmed": "yes", "reason": "a trial"}).status_code == 302
    assert "data-override" in client.get(address(project, "prm", version=2)).content.decode()
    assert client.post(address(project, "roll_back_prm")).status_code == 302
    assert registry.current_prm(project.pk) == prm
    assert client.post(address(project, "roll_back_prm")).status_code == 422
    assert client.post(address(project, "register_prm"), {**data, "address": "file:///x"}).status_code == 422
    assert client.post(address(project, "register_prm"), {**data, "backend": "http"}).status_code == 422
    assert client.post(address(project, "register_prm"), {**data, "secret": "ключ"}).status_code == 422


@pytest.mark.fault
def test_undecided_generation_shows_its_power_and_asks_for_a_confirmation() -> None:
    project = generation_project.make_project(labeled=60, unread=10)
    generation_project.run_generation(project)
    generation_project.import_records(project, labeled=30, unread=0, seed=1)
    generation_project.run_generation(project, factories.NOW + dt.timedelta(days=1))
    client = log_in_member(project)
    response = client.get(address(project))
    newest, first = response.context["timeline"]
    assert (newest["generation"].verdict, first["generation"].verdict) == ("undecided", "accepted")
    assert newest["power"].missing > 0
    assert newest["power"].n_pairs > newest["power"].n_problems > 0
    page = response.content.decode()
    assert re.findall(r'data-power="(\d)"', page) == ["2"]
    page = client.get(address(project, "prm", version=2)).content.decode()
    assert 'data-verdict="undecided"' in page
    current = address(project, "make_prm_current", version=2)
    asked = client.post(current).content.decode()
    assert re.findall(r'data-concern="(\w+)"', asked) == ["undecided"]
    assert "required" not in asked.partition("<textarea")[2].partition(">")[0]
    assert client.post(current, {"confirmed": "yes"}).status_code == 302
    prm = registry.current_prm(project.pk)
    assert prm is not None
    assert prm.version == 2


@pytest.mark.fault
def test_saved_rules_end_the_fallback_to_random() -> None:
    project = factories.make_project()
    generations.fall_back_to_random(project=project, now=factories.NOW)
    client = log_in_member(project)
    assert "data-fell-back" in client.get(address(project)).content.decode()
    data = {"acquisition": "margin", "batch_size": 9, "temperature": 0.2, "domain_quota": 0.5, "gate_margin": 0.04}
    assert client.post(address(project, "change_selection_rules"), data).status_code == 302
    rules = generations.load_loop_rules(project)
    assert rules.acquisition == "margin"
    assert rules.batch_size == 9
    assert rules.gate_margin == 0.04
    assert rules.fell_back_at is None
    for odd in (
        {"temperature": 0},
        {"gate_margin": 0.5},
        {"every_n_submissions": 2**31},
        {"every_n_submissions": "9" * 19},
    ):
        assert client.post(address(project, "change_selection_rules"), {**data, **odd}).status_code == 422


@pytest.mark.fault
def test_custom_acquisition_of_the_command_stays_a_choice_on_the_page() -> None:
    project = generation_project.make_project(labeled=40, unread=10)
    own = "tests.prm.selection.test_acquisitions:by_number"
    call_command("run_generation", "--project", project.slug, "--acquisition", own)
    assert Generation.objects.get(project=project).acquisition == own
    client = log_in_member(project)
    assert f'<option value="{own}" selected>' in client.get(address(project)).content.decode()
    data = {"acquisition": own, "batch_size": 9, "temperature": 0.2, "domain_quota": 0.5, "gate_margin": 0.04}
    assert client.post(address(project, "change_selection_rules"), data).status_code == 302
    assert generations.load_loop_rules(project).acquisition == own
    assert (
        client.post(address(project, "change_selection_rules"), {**data, "acquisition": "os:remove"}).status_code == 422
    )
    with pytest.raises(CommandError, match="nothing:like_this"):
        call_command("run_generation", "--project", project.slug, "--acquisition", "nothing:like_this")


@pytest.mark.fault
def test_reviewer_sees_no_scores_of_a_trace() -> None:
    project = generation_project.make_project(labeled=60, unread=10)
    generation_project.run_generation(project)
    drawn = TraceDraw.objects.filter(project=project).first()
    assert drawn is not None
    page = log_in_member(project, Role.REVIEWER).get(address(project, "trace", trace=drawn.trace_id)).content.decode()
    assert 'id="why"' not in page


def test_withheld_prediction_shows_no_number() -> None:
    project = factories.make_project()
    gain = {"gain": 0.1, "low": 0.0, "high": 0.2}
    points = [{"n": n, "policy": 0.6, "uniform": 0.5} for n in (10, 20)]
    payoff = {"points": points, "labels": gain, "hours": gain, "hint": {"batch": 120, "is_withheld": True}}
    times = {"started_at": factories.NOW, "ended_at": factories.NOW}
    Generation.objects.create(project=project, number=1, stage="done", payoff=payoff, **times)
    page = log_in_member(project).get(address(project))
    assert "data-withheld" in page.content.decode()
    assert not page.context["payoff"]["says_stop"]


def test_figures_of_domains_have_n_and_an_interval_or_no_value() -> None:
    project = factories.make_project()
    known = {"value": 0.75, "interval": [0.6, 0.9], "n": 40, "reason": ""}
    tiny = {"value": 0.0, "interval": None, "n": 2, "reason": "fewer than 5 problems"}
    headline = "risk_set_auc_length_matched"
    domains = {"algebra": {headline: known}, "geometry": {headline: tiny}}
    identity = PRMIdentity(backend="vllm", model="m", address="http://127.0.0.1:1")
    prm = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    PRM.objects.filter(pk=prm.pk).update(evaluation={"figures": {"f1": known}, "domains": domains})
    page = log_in_member(project).get(address(project, "prm", version=prm.version)).content.decode()
    cells = dict(re.findall(r'<td data-n="(40|2)">(.*?)</td>', page, re.S))
    assert "0.75" in cells["40"]
    assert "0.60" in cells["40"]
    assert "0.00" not in cells["2"]
    assert tiny["reason"] in cells["2"]
