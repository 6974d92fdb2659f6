"""A lead creates a project, brings it to work, adjudicates, and reads its agreement."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from demo import make_projects
from jobs import runner
from jobs.models import Job
from labeling import overlap_change
from labeling.models import Gold, Project, Rater, Settlement
from labeling.models.consensus import SettlementState
from labeling.models.rater import RaterStage
from labeling.traces import import_job
from tests import factories
from tests.journeys.conftest import Visit, accessibility_violations

pytestmark = pytest.mark.django_db(transaction=True)


def find_faults(page: Page, address: str) -> list[str]:
    """Return accessibility violations in both themes. Only the contrast can differ between themes."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for fold in page.locator("details.data > summary").all():
        fold.click()
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    found = [*accessibility_violations(page), *(["runs off the side"] if wide else [])]
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    expect(page.locator("html")).to_have_css("background-color", "rgb(17, 19, 22)")
    return [f"{page.url}: {each}" for each in [*found, *accessibility_violations(page, "color-contrast")]]


def test_lead_creates_and_configures_a_project(visit: Visit, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    lead = factories.make_user("marchetti", name="Elena Marchetti", is_staff=True)
    page = visit(lead)
    page.goto(reverse("dashboard:new_project"))
    page.get_by_label("Name").fill("Competition math")
    page.get_by_label("Address").fill("maths")
    page.get_by_role("button", name="Make the project").click()
    expect(page.get_by_text("is made. Invite people")).to_be_visible()
    page.get_by_role("button", name="Make a link").click()
    expect(page.get_by_text("It is shown this once")).to_be_visible()
    _publish_a_guideline(page)
    _import_traces(page)
    page.get_by_role("link", name="Traces", exact=True).click()
    expect(page.locator("table.traces tbody tr")).to_have_count(3)
    page.get_by_role("link", name="Settings").click()
    _raise_overlap(page)
    page.get_by_role("link", name="Jobs").click()
    expect(page.get_by_text("Change how often traces are read")).to_be_visible()


def _publish_a_guideline(page: Page) -> None:
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Guideline", exact=True).click()
    page.get_by_role("link", name="Step-by-step math").click()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="As raters will read it")).to_be_visible()
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("Version 1 is published")).to_be_visible()


def _import_traces(page: Page) -> None:
    """Import a file through the browser."""
    records = [{"problem": f"What is ${n} + 2$?", "steps": ["Count on.", f"It is ${n + 2}$."]} for n in range(3)]
    lines = "\n".join(json.dumps(each) for each in records).encode()
    page.get_by_role("link", name="Imports").click()
    page.get_by_label("Upload a file").set_input_files(
        {"name": "sums.jsonl", "mimeType": "application/jsonl", "buffer": lines}
    )
    page.get_by_role("button", name="Preview import").click()
    expect(page.get_by_role("heading", name="sums.jsonl")).to_be_visible()
    page.get_by_role("button", name="Import file").click()
    expect(page.locator('#import-progress[data-state="queued"]')).to_be_visible()
    _run_job(import_job)
    expect(page.locator('#import-progress[data-state="done"]')).to_be_visible()  # the page polls


def _run_job(handler: Any) -> None:
    """Run the latest job of this kind, as a worker does."""
    runner.run_job(Job.objects.filter(kind=handler.KIND).latest("pk").pk, handler.chunks)


def _raise_overlap(page: Page) -> None:
    page.get_by_label("Readings of each trace").fill("3")
    page.get_by_role("button", name="See what changes").click()
    expect(page.get_by_text("Each trace is read 3 times")).to_be_visible()
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_text("follow in the background")).to_be_visible()
    _run_job(overlap_change)


def test_lead_pages_of_a_working_project_are_accessible(visit: Visit) -> None:
    """One demo project serves all steps, because it is slow to create."""
    demo = make_projects.make_demo(now=timezone.now())
    project = demo.projects[0]
    found = []
    for width in (1440, 390):
        page = visit(demo.lead, width=width)
        for address in _addresses(project):
            found += find_faults(page, address)
    assert not found, json.dumps(found, indent=1)
    _review_the_project(visit(demo.lead), project)
    _exchange_messages(visit(demo.lead), visit(demo.annotator), project)


def _addresses(project: Project) -> list[str]:
    settled = Settlement.objects.filter(project=project, state=SettlementState.SETTLED)[0].trace
    read = settled.assignments.filter(submitted_revision__gt=0)[0]
    gold = Gold.objects.filter(trace__project=project)[0]
    rater = Rater.objects.filter(project=project, paused_at__isnull=False)[0]
    names = (
        "overview",
        "annotators",
        "messages",
        "agreement",
        "traces",
        "adjudication",
        "gold",
        "screening_set",
        "settings",
        "guideline",
        "lifecycle",
    )
    return [
        *(reverse(f"dashboard:{name}", args=[project.slug]) for name in (*names, "jobs")),
        reverse("dashboard:annotator", args=[project.slug, rater.pk]),
        reverse("dashboard:thread", args=[project.slug, rater.pk]),
        reverse("dashboard:trace", args=[project.slug, settled.pk]),
        reverse("dashboard:gold_trace", args=[project.slug, gold.pk]),
        reverse("dashboard:submission", args=[project.slug, read.pk]),
        reverse("dashboard:guideline_version", args=[project.slug, 1]),
    ]


def _review_the_project(page: Page, project: Project) -> None:
    assert Settlement.objects.filter(project=project, state=SettlementState.CONTESTED).exists()
    page.goto(reverse("dashboard:overview", args=[project.slug]))
    page.locator("[data-todo=contested] a").click()
    expect(page.locator("form[data-adjudication][data-ready]")).to_be_visible()
    page.get_by_role("link", name="Annotators").click()
    expect(page.locator("[data-gold-threshold]")).to_be_visible()
    page.get_by_role("link", name="Agreement", exact=True).click()
    expect(page.locator("[data-statistic=alpha_nominal]")).to_be_visible()
    page.get_by_role("link", name="Traces", exact=True).click()
    page.get_by_label("State").select_option("settled")
    page.locator("[data-search]").click()
    page.locator("table.traces tbody th a").first.click()
    page.locator(".readings a").first.click()
    page.locator("#note").fill("Look at step 2 again.")
    page.locator("[data-request-correction]").click()
    expect(page.locator("[data-correction=open]")).to_be_visible()


def _exchange_messages(lead: Page, reader: Page, project: Project) -> None:
    rater = Rater.objects.filter(project=project, user__username="annotator")
    rater.update(stage=RaterStage.WORKING, read_guideline=project.guideline_id, agreed_text=project.consent_text_id)
    lead.goto(reverse("dashboard:annotator", args=[project.slug, rater.get().pk]))
    lead.get_by_role("link", name="Write message").click()
    lead.get_by_label("Message").fill("Is step 2 of the last one sound?")
    lead.get_by_role("button", name="Send").click()
    reader.goto(reverse("annotate:work", args=[project.slug]))
    line = reader.get_by_text("wrote to you")
    line.click()
    expect(reader.locator(".letter__text")).to_have_text("Is step 2 of the last one sound?")
    assert not accessibility_violations(reader)
    reader.get_by_label("Answer in a line").fill("It is: 1 2 3.")  # keys that rate sleep in the field
    reader.keyboard.press("Enter")
    expect(line).to_have_count(0)
    expect(reader.locator(".step.is-rated")).to_have_count(0)
    lead.reload()
    expect(lead.get_by_text("It is: 1 2 3.")).to_be_visible()
