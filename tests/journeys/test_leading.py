"""A lead's way through a project, from making it to reading how far its labels can be trusted."""

import json

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from demo import make
from jobs import runner
from jobs.models import Job
from labeling import overlapping
from labeling.models import Project, Settlement
from labeling.models.consensus import SettlementState
from tests import factories
from tests.journeys.conftest import Visit, violations

pytestmark = pytest.mark.django_db(transaction=True)


def faults(page: Page) -> list[str]:
    """Whatever stands in somebody's way on the page that is open."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return [f"{page.url}: {each}" for each in [*violations(page), *(["runs off the side"] if wide else [])]]


def test_lead_makes_a_project_and_brings_it_to_work(visit: Visit) -> None:
    lead = factories.make_user("marchetti", name="Elena Marchetti", is_staff=True)
    page = visit(lead)
    page.goto(reverse("dashboard:new_project"))
    page.get_by_label("Name").fill("Competition maths")
    page.get_by_label("Address").fill("maths")
    page.get_by_role("button", name="Make the project").click()
    expect(page.get_by_text("is made. Invite people")).to_be_visible()
    page.get_by_role("button", name="Make a link").click()
    expect(page.get_by_text("It is shown this once")).to_be_visible()
    _publish_a_guideline(page)
    _bring_in()
    page.get_by_role("link", name="Traces", exact=True).click()
    expect(page.get_by_text("Waits for 2 readings").first).to_be_visible()
    page.get_by_role("link", name="Settings").click()
    _read_more_often(page)
    page.get_by_role("link", name="Jobs").click()
    expect(page.get_by_text("Change how often traces are read")).to_be_visible()


def _publish_a_guideline(page: Page) -> None:
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Guideline", exact=True).click()
    page.get_by_role("link", name="Step-by-step maths").click()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="As raters will read it")).to_be_visible()
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("Version 1 is published")).to_be_visible()


def _bring_in() -> None:
    project = Project.objects.get(slug="maths")
    lane = factories.make_lane(project)
    for _ in range(3):
        factories.make_entry(lane, factories.make_trace(project), slots=2)


def _read_more_often(page: Page) -> None:
    page.get_by_label("Readings of each trace").fill("3")
    page.get_by_role("button", name="See what changes").click()
    expect(page.get_by_text("Each trace is read 3 times")).to_be_visible()
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_text("follow in the background")).to_be_visible()
    runner.run(Job.objects.get(kind=overlapping.KIND).pk, overlapping.chunks, sleep=lambda _: None)


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)])
def test_pages_of_a_project_at_work_have_no_barrier(width: int, dark: bool, visit: Visit) -> None:
    demo = make.make(now=timezone.now())
    project = demo.projects[0]
    settled = Settlement.objects.filter(project=project, state=SettlementState.SETTLED).first()
    assert settled is not None
    trace = settled.trace
    read = trace.assignments.filter(submitted_revision__gt=0).first()
    assert read is not None
    page, found = visit(demo.lead, width=width, dark=dark), []
    names = (
        "overview",
        "annotators",
        "agreement",
        "traces",
        "adjudicate",
        "gold",
        "settings",
        "guideline",
        "life",
        "jobs",
    )
    addresses = [reverse(f"dashboard:{name}", args=[project.slug]) for name in names]
    addresses += [
        reverse("dashboard:trace", args=[project.slug, trace.pk]),
        reverse("dashboard:review", args=[project.slug, read.pk]),
        reverse("dashboard:guideline_version", args=[project.slug, 1]),
    ]
    for address in addresses:
        page.goto(address)
        for fold in page.locator("details.data > summary").all():
            fold.click()
        found += faults(page)
    assert not found, json.dumps(found, indent=1)


def test_lead_watches_decides_and_reads_agreement(visit: Visit) -> None:
    demo = make.make(now=timezone.now())
    project = demo.projects[0]
    n_contested = Settlement.objects.filter(project=project, state=SettlementState.CONTESTED).count()
    assert n_contested
    page = visit(demo.lead)
    page.goto(reverse("dashboard:overview", args=[project.slug]))
    expect(page.get_by_role("heading", name="Settled traces and forecast")).to_be_visible()
    page.get_by_role("link", name="Contested trace").click()
    expect(page.locator("form[data-adjudicate][data-ready]")).to_be_visible()
    page.get_by_role("link", name="Annotators").click()
    expect(page.get_by_role("columnheader", name="Gold right")).to_be_visible()
    page.get_by_role("link", name="Agreement", exact=True).click()
    expect(page.get_by_role("rowheader", name="Alpha nominal")).to_be_visible()
    page.get_by_role("link", name="Traces", exact=True).click()
    page.get_by_label("State").select_option("settled")
    page.get_by_role("button", name="Find").click()
    page.locator("table.traces tbody th a").first.click()
    page.locator(".readings a").first.click()
    expect(page.get_by_role("heading", name="How it was read")).to_be_visible()
    page.get_by_label("What to look at again").fill("Look at step 2 again.")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_text("It stands on the rater’s page")).to_be_visible()
