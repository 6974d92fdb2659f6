"""A lead creates a project, prepares it for work, adjudicates, and reads the agreement."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from demo import make_projects
from jobs import runner
from jobs.models import Job
from labeling import overlap_change
from labeling.models import Assignment, Gold, Project, Rater, Settlement
from labeling.models.consensus import SettlementState
from labeling.models.rater import RaterStage
from labeling.traces import import_job
from live import answer_pool
from people import members
from people.models import Role
from tests import factories
from tests.journeys import demo_forms
from tests.journeys.conftest import Visit, accessibility_violations, violations_in_both_themes

pytestmark = pytest.mark.django_db(transaction=True)


def find_faults(page: Page, address: str) -> list[str]:
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for fold in page.locator("details.data > summary").all():
        fold.click()
    page.evaluate("scrollTo(0, 0)")  # the header covers controls of a scrolled page
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    found = [*violations_in_both_themes(page), *(["runs off the side"] if wide else [])]
    return [f"{page.url}: {each}" for each in found]


def test_lead_creates_and_configures_a_project(visit: Visit, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    lead = factories.make_user("marchetti", name="Elena Marchetti", is_staff=True)
    page = visit(lead)
    page.goto(reverse("dashboard:new_project"))
    page.locator("#id_name").fill("Competition maths")
    page.locator("#id_slug").fill("maths")
    page.locator("form button[type=submit].btn--big").click()
    page.locator("form.invite button[type=submit]").click()
    expect(page.locator("#link")).to_be_visible()
    _publish_a_guideline(page)
    _import_traces(page)
    page.get_by_role("link", name="Traces", exact=True).click()
    expect(page.locator("table.traces tbody tr")).to_have_count(3)
    page.get_by_role("link", name="Settings").click()
    _raise_overlap(page)
    page.get_by_role("link", name="Jobs").click()
    expect(page.locator("#jobs tbody tr")).to_have_count(2)  # the import and the changed overlap


def _publish_a_guideline(page: Page) -> None:
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Guideline", exact=True).click()
    page.locator("a[href*='template=']").first.click()
    page.locator("button[name=preview]").click()
    expect(page.locator("#preview")).to_be_visible()
    page.locator("button[name=publish]").click()
    expect(page.locator("section[aria-labelledby=versions] tbody tr")).to_have_count(1)


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
    page.locator("#id_overlap").fill("3")
    page.locator("form.settings button[type=submit]").first.click()
    expect(page.locator("[data-changes]")).to_be_visible()
    page.locator("main form button.btn--go").click()
    expect(page.get_by_role("status")).to_be_visible()
    _run_job(overlap_change)


@pytest.mark.slow
def test_lead_pages_of_a_working_project_are_accessible(visit: Visit) -> None:
    """One demo project serves all steps, because it is slow to create."""
    demo = make_projects.make_demo(now=timezone.now())
    project = demo.projects[0]
    found = []
    for width in (1440, 390):
        page = visit(demo.lead, width=width)
        for address in _addresses(project):
            found += find_faults(page, address)
    found += _walk_forms(visit(demo.lead), visit(demo.annotator), demo.annotator)
    assert not found, json.dumps(found, indent=1)
    _review_the_project(visit(demo.lead), project)
    _exchange_messages(visit(demo.lead), visit(demo.annotator), project)


def _walk_forms(lead: Page, rater: Page, annotator: User) -> list[str]:
    """Look at the results of each form of labeling, and at the work on it."""
    found = []
    for address in demo_forms.list_lead_pages():
        lead.goto(address)
        found += _find_faults_in_forms(lead)
    demo_forms.pass_onboarding(annotator)
    demo_forms.put_recovering_traces_first()
    for slug, act in demo_forms.WORK.items():
        rater.goto(reverse("annotate:work", args=[slug]))
        expect(rater.locator("html[data-ready] .step.is-now")).to_be_visible()
        act(rater)
        found += _find_faults_in_forms(rater)
    demo_forms.begin_live(rater)
    demo_forms.rate_options(rater)
    found += _find_faults_in_forms(rater)
    answer_pool.wait_until_idle()
    return found


def _find_faults_in_forms(page: Page) -> list[str]:
    """Return accessibility violations of a page as it is: light, dark, and on a phone with forced colors."""
    page.emulate_media(color_scheme="light", forced_colors="none", reduced_motion="reduce")
    page.set_viewport_size({"width": 1440, "height": 900})
    found = accessibility_violations(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found += accessibility_violations(page, "color-contrast")
    page.emulate_media(color_scheme="light", forced_colors="active", reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    found += accessibility_violations(page)
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        found.append("runs off the side")
    return [f"{page.url}: {each}" for each in found]


def _settled_assignment(project: Project) -> Assignment:
    """Return an assignment with a submission whose trace is settled. Imported labels settle a trace without one."""
    return Assignment.objects.filter(
        trace__project=project, submitted_revision__gt=0, trace__settlement__state=SettlementState.SETTLED
    ).earliest("pk")


def _addresses(project: Project) -> list[str]:
    read = _settled_assignment(project)
    gold = Gold.objects.filter(trace__project=project)[0]
    rater = Rater.objects.filter(project=project, paused_at__isnull=False)[0]
    names = (
        "overview",
        "annotators",
        "messages",
        "agreement",
        "traces",
        "groups",
        "pay",
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
        reverse("dashboard:trace", args=[project.slug, read.trace_id]),
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
    expect(page.locator("table.traces tbody th a").first).to_be_visible()
    page.goto(reverse("dashboard:trace", args=[project.slug, _settled_assignment(project).trace_id]))
    page.locator(".readings a").first.click()
    page.locator("#note").fill("Look at step 2 again.")
    page.locator("[data-request-correction]").click()
    expect(page.locator("[data-correction=open]")).to_be_visible()


def _exchange_messages(lead: Page, reader: Page, project: Project) -> None:
    rater = Rater.objects.filter(project=project, user__username="annotator")
    rater.update(stage=RaterStage.WORKING, read_guideline=project.guideline_id, agreed_text=project.consent_text_id)
    lead.goto(reverse("dashboard:annotator", args=[project.slug, rater.get().pk]))
    lead.get_by_role("link", name="Write message").click()
    lead.locator("#id_text").fill("Is step 2 of the last one sound?")
    lead.get_by_role("button", name="Send message").click()
    reader.goto(reverse("annotate:work", args=[project.slug]))
    line = reader.locator("details.letter--line").filter(has_text="Is step 2 of the last one sound?")
    line.locator("summary").click()
    expect(line.locator(".letter__text")).to_be_visible()
    assert not accessibility_violations(reader)
    line.locator("[name=answer]").fill("It is: 1 2 3.")  # rating keys are off while typing
    reader.keyboard.press("Enter")
    expect(line).to_have_count(0)
    expect(reader.locator(".step.is-rated")).to_have_count(0)
    lead.reload()
    expect(lead.get_by_text("It is: 1 2 3.")).to_be_visible()


def test_lead_filters_annotators_without_a_reload(visit: Visit) -> None:
    project, lead = factories.make_project("filters"), factories.make_user("marchetti")
    members.add_member(project=project, user=lead, role=Role.LEAD, now=factories.NOW)
    for name in ("aino", "bertil"):
        user = factories.make_user(name, name=name.title())
        members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    page = visit(lead)
    page.goto(reverse("dashboard:annotators", args=["filters"]))
    page.evaluate("window.isSamePage = true")
    expect(page.locator("#people tbody tr")).to_have_count(2)
    page.locator("#annotator-filters input[type=search]").press_sequentially("bert")
    expect(page.locator("#people tbody tr")).to_have_count(1)
    expect(page.locator("#annotator-filters input[type=search]")).to_be_focused()
    assert page.url.endswith("?q=bert")
    page.locator("#annotator-filters .seg a").first.click()
    expect(page.locator("#people tbody tr")).to_have_count(2)
    assert page.evaluate("window.isSamePage")
