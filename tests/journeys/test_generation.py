"""A lead starts a generation on the demo and follows it in a browser while a worker runs it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections
from django.utils import timezone
from playwright.sync_api import expect

from demo import make_projects as demo
from labeling.models import Project, TraceDraw
from prm.models import Generation
from tests.journeys.conftest import Visit, accessibility_violations
from tests.prm import generation_project

pytestmark = pytest.mark.django_db(transaction=True)
A_MINUTE = 60_000


@contextmanager
def a_worker() -> Iterator[None]:
    """Run jobs in a thread, as the platform's worker does, from their database rows."""
    is_over = threading.Event()

    def work() -> None:
        try:
            while not is_over.wait(0.2):
                generation_project.run_jobs(timezone.now())
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_lead_runs_a_generation_on_the_demo_by_one_button(visit: Visit) -> None:
    lead = demo.make_demo(now=timezone.now()).lead
    project = Project.objects.get(slug="demo-maths")
    page = visit(lead)
    page.goto(f"/projects/{project.slug}/generations/")
    expect(page.get_by_text("No PRM is current yet")).to_be_visible()
    page.get_by_role("button", name="Start generation 1").click()
    expect(page.get_by_role("heading", name="Generation 1 is running")).to_be_visible()
    expect(page.get_by_role("progressbar", name="Progress of the generation")).to_be_visible()
    began = time.monotonic()
    with a_worker():
        expect(page.get_by_role("button", name="Start generation 2")).to_be_visible(timeout=A_MINUTE)
    assert time.monotonic() - began < 60
    generation = Generation.objects.get(project=project)
    assert (generation.stage, generation.has_passed) == ("done", True)
    assert TraceDraw.objects.filter(project=project).exists()
    expect(page.get_by_text("is current since")).to_be_visible()
    assert accessibility_violations(page) == []
    page.get_by_role("region", name="PRMs").get_by_role("link", name="1").click()
    expect(page.get_by_role("heading", name="PRM 1")).to_be_visible()
    assert accessibility_violations(page) == []


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1440, True)])
def test_pages_of_generations_have_no_barrier_and_fit(width: int, dark: bool, visit: Visit) -> None:
    lead = demo.make_demo(now=timezone.now()).lead
    project = Project.objects.get(slug="demo-maths")
    generation_project.run_generation(project, timezone.now())
    drawn = TraceDraw.objects.filter(project=project).order_by("rank")[0]
    page = visit(lead, width=width, dark=dark)
    for address in ("models/", "models/1/", f"traces/{drawn.trace_id}/"):
        page.goto(f"/projects/{project.slug}/{address}")
        assert accessibility_violations(page) == [], address
        assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"), address
