"""A lead's way through a project, from making it to reading how far its labels can be trusted."""

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


def faults(page: Page, address: str) -> list[str]:
    """Whatever stands in somebody's way on a page, in both themes. They differ in colours alone: nothing but contrast
    is looked at twice."""
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


def test_lead_makes_a_project_and_brings_it_to_work(visit: Visit, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
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
    _bring_in(page)
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


def _bring_in(page: Page) -> None:
    """A file by hand, as somebody does who has no program for it."""
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
    _work_off(import_job)
    expect(page.locator('#import-progress[data-state="done"]')).to_be_visible()  # the page polls


def _work_off(handler: Any) -> None:
    """What a worker would do."""
    runner.run_job(Job.objects.filter(kind=handler.KIND).latest("pk").pk, handler.chunks)


def _read_more_often(page: Page) -> None:
    page.get_by_label("Readings of each trace").fill("3")
    page.get_by_role("button", name="See what changes").click()
    expect(page.get_by_text("Each trace is read 3 times")).to_be_visible()
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_text("follow in the background")).to_be_visible()
    _work_off(overlap_change)


def test_lead_of_a_project_at_work_meets_no_barrier_and_reads_agreement(visit: Visit) -> None:
    """One demo for all of it: everything here reads the same project."""
    demo = make_projects.make_demo(now=timezone.now())
    project = demo.projects[0]
    found = []
    for width in (1440, 390):
        page = visit(demo.lead, width=width)
        for address in _addresses(project):
            found += faults(page, address)
    assert not found, json.dumps(found, indent=1)
    _watch_decide_and_read_agreement(visit(demo.lead), project)
    _write_and_be_answered(visit(demo.lead), visit(demo.annotator), project)


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


def _watch_decide_and_read_agreement(page: Page, project: Project) -> None:
    assert Settlement.objects.filter(project=project, state=SettlementState.CONTESTED).exists()
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


def _write_and_be_answered(lead: Page, reader: Page, project: Project) -> None:
    rater = Rater.objects.filter(project=project, user__username="annotator")
    rater.update(stage=RaterStage.WORKING, read_guideline=project.guideline_id, agreed_text=project.consent_text_id)
    lead.goto(reverse("dashboard:annotator", args=[project.slug, rater.get().pk]))
    lead.get_by_role("link", name="Write", exact=True).click()
    lead.get_by_label("Message").fill("Is step 2 of the last one sound?")
    lead.get_by_role("button", name="Send").click()
    reader.goto(reverse("annotate:work", args=[project.slug]))
    line = reader.locator("#unread [data-message] summary")
    line.click()
    expect(reader.locator(".letter__text")).to_have_text("Is step 2 of the last one sound?")
    assert not accessibility_violations(reader)
    reader.locator("#unread [name=answer]").fill("It is: 1 2 3.")  # keys do not rate while typing
    reader.keyboard.press("Enter")
    expect(line).to_have_count(0)
    expect(reader.locator(".step.is-rated")).to_have_count(0)
    lead.reload()
    expect(lead.get_by_text("It is: 1 2 3.")).to_be_visible()
