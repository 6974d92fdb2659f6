"""A whole generation on the demo, started with one button and followed in a real browser while a worker runs it."""

import time
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from demo import make_projects
from demo.plans import PLANS
from jobs import runner
from jobs.models import Job
from labeling.models import Project, TraceDraw
from people import members
from people.models import Role
from prm import file_evaluation, registry
from prm.models import Generation
from prm.registry import PRMIdentity
from tests import factories
from tests.journeys.background_worker import running_worker
from tests.journeys.conftest import FORMS, Visit, accessibility_violations
from tests.journeys.test_lead_pages import find_faults
from tests.prm import generation_project
from tests.prm.test_evaluate_prm import write_records

pytestmark = pytest.mark.django_db(transaction=True)
A_MINUTE = 60_000


def run_generations() -> None:
    generation_project.run_jobs(timezone.now())


def make_demo_of_math() -> tuple[User, Project]:
    made = make_projects.make_demo(now=timezone.now(), plans=[plan for plan in PLANS if plan.slug == "demo-maths"])
    [project] = made.projects
    return made.lead, project


def test_lead_runs_a_generation_on_the_demo_by_one_button(visit: Visit) -> None:
    lead, project = make_demo_of_math()
    page = visit(lead)
    page.goto(f"/projects/{project.slug}/generations/")
    page.get_by_role("button", name="Start generation 1").click()
    expect(page.get_by_role("heading", name="Generation 1 is running")).to_be_visible()
    expect(page.get_by_role("progressbar", name="Progress of the generation")).to_be_visible()
    began = time.monotonic()
    with running_worker(run_generations):
        expect(page.get_by_role("button", name="Start generation 2")).to_be_visible(timeout=A_MINUTE)
    assert time.monotonic() - began < 60
    generation = Generation.objects.get(project=project)
    assert (generation.stage, generation.verdict) == ("done", "accepted")
    assert TraceDraw.objects.filter(project=project).exists()
    expect(page.get_by_role("region", name="PRMs").locator(".tag--ink")).to_be_visible()
    assert accessibility_violations(page) == []
    page.get_by_role("region", name="PRMs").get_by_role("link", name="1").click()
    expect(page.get_by_role("heading", name="PRM 1")).to_be_visible()
    assert accessibility_violations(page) == []


def test_pages_of_generations_have_no_barrier_and_fit(visit: Visit) -> None:
    """One demo project serves both forms, because it is slow to create."""
    lead, project = make_demo_of_math()
    generation_project.run_generation(project, timezone.now())
    drawn = TraceDraw.objects.filter(project=project).order_by("rank")[0]
    for width, dark in ((390, False), (1440, True)):
        page = visit(lead, width=width, dark=dark)
        for address in ("generations/", "prms/1/", f"traces/{drawn.trace_id}/"):
            page.goto(f"/projects/{project.slug}/{address}")
            assert accessibility_violations(page) == [], (width, address)
            wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
            assert not wide, (width, address)


@pytest.mark.parametrize(("width", "height"), FORMS)
def test_engineer_evaluates_a_prm_on_a_file(width: int, height: int, visit: Visit, tmp_path: Path) -> None:
    project = generation_project.make_project(labeled=60, unread=5)
    generation_project.run_generation(project, timezone.now())
    engineer = factories.make_user()
    members.add_member(project=project, user=engineer, role=Role.ENGINEER, now=timezone.now())
    page = visit(engineer, width=width, height=height)
    page.goto(f"/projects/{project.slug}/prms/1/")
    page.locator("form[action$=evaluate] input[type=file]").set_input_files(write_records(tmp_path / "mine.jsonl"))
    page.locator("form[action$=evaluate] button[type=submit]").click()
    expect(page.locator("#file-evaluations").get_by_role("progressbar")).to_be_visible()
    job = Job.objects.get(kind=file_evaluation.KIND)
    assert runner.run_job(job.pk, file_evaluation.run_file_evaluation_job) == "done"
    expect(page.locator("tr[data-file='mine.jsonl']")).to_be_visible()  # the page polls
    assert find_faults(page, page.url) == []


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1440, False), (720, False)])
def test_engineer_makes_an_undecided_and_an_unevaluated_prm_current(width: int, dark: bool, visit: Visit) -> None:
    project = generation_project.make_project(labeled=60, unread=10)
    generation_project.run_generation(project, timezone.now())
    generation_project.import_records(project, labeled=30, unread=0, seed=1)
    assert generation_project.run_generation(project, timezone.now()).verdict == "undecided"
    identity = PRMIdentity("pushed", "mine")
    registry.register_prm(project=project, identity=identity, by=None, now=timezone.now())
    engineer = factories.make_user()
    members.add_member(project=project, user=engineer, role=Role.ENGINEER, now=timezone.now())
    page = visit(engineer, width=width, dark=dark)
    for version, concern in ((2, "undecided"), (3, "unevaluated")):
        page.goto(f"/projects/{project.slug}/generations/")
        expect(page.locator('[data-power="2"]')).to_be_visible()
        assert accessibility_violations(page) == []
        page.get_by_role("button", name=f"Promote {version}").click()
        expect(page.locator(f'[data-concern="{concern}"]')).to_be_visible()
        assert accessibility_violations(page) == []
        assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        go = page.get_by_role("button", name=f"Promote PRM {version}")
        if concern == "unevaluated":
            go.click()  # the browser asks for the reason first
            expect(page.locator("#reason:invalid")).to_be_focused()
            page.locator("#reason").fill("We compare it by hand.")
        go.click()
        page.wait_for_url(f"**/projects/{project.slug}/generations/")
        page.goto(f"/projects/{project.slug}/prms/{version}/")
        expect(page.locator("[data-override]")).to_be_visible()
        assert accessibility_violations(page) == []
    current = registry.current_prm(project.pk)
    assert current is not None
    assert current.version == 3
