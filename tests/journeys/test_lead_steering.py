"""A lead steers a project by hand: groups, rules, tags, gold, adjudication, settled traces, limits, a budget, a removed
member, and the log."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from labeling import queue
from labeling.models import AdjudicationTask, Gold, Project, QueueEntry, Rater, RaterGroup, Settlement
from labeling.quality import adjudication, workdays
from labeling.quality.resolve import resolve_traces
from people import members
from people.models import Role
from tests import factories
from tests.journeys.conftest import FORMS, Visit, accessibility_violations
from tests.journeys.test_lead_pages import find_faults
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db(transaction=True)
NOW = factories.NOW


@pytest.fixture
def cast() -> Personas:
    """One trace that two annotators settled, and two in the queue."""
    cast = make_personas()
    Project.objects.filter(pk=cast.project.pk).update(pay_per_hour=Decimal(20))
    members.add_member(project=cast.project, user=factories.make_user("other"), role=Role.ANNOTATOR, now=NOW)
    settled, *waiting = (factories.make_trace(cast.project) for _ in range(3))
    ids = [each.pk for each in (settled, *waiting)]
    queue.enqueue(project_id=cast.project.pk, arm="uniform", trace_ids=ids, slots=2, now=NOW)
    QueueEntry.objects.filter(trace=settled).update(slots_left=0)
    for rater in Rater.objects.filter(project=cast.project).order_by("pk"):
        submitted_work.submit_trace(rater, settled, [1, -1])
    resolve_traces(project_id=cast.project.pk, trace_ids=[settled.pk], now=NOW)
    workdays.update_workdays(project_id=cast.project.pk, now=NOW)
    return cast


def go_to(page: Page, cast: Personas, name: str, *args: object) -> None:
    address = reverse(f"dashboard:{name}", args=[cast.project.slug, *args])
    assert find_faults(page, address) == []


@pytest.mark.parametrize(("width", "height"), FORMS)
def test_lead_steers_a_campaign_by_hand(cast: Personas, visit: Visit, width: int, height: int) -> None:
    page = visit(cast.lead, width=width, height=height)
    go_to(page, cast, "groups")
    form = page.locator("form[action$=save]").last
    form.locator("input[name=name]").fill("Geometry")
    form.locator("input[name=raters]").first.check()
    form.locator("button[type=submit]").click()
    expect(page.locator("[data-group=Geometry]")).to_be_visible()

    go_to(page, cast, "traces")
    page.locator("details.actions summary").click()
    page.locator("[data-select-all]").check()
    page.locator("input[name=tag]").fill("geometry")
    page.locator("button[value=tag]").click()
    expect(page.locator("[data-tag=geometry]")).to_have_count(3)
    page.locator("details.actions summary").click()
    page.locator("[data-select-all]").check()
    page.locator("select[name=audience]").select_option(f"group:{RaterGroup.objects.get().pk}")
    page.locator("button[value=first]").click()
    expect(page.get_by_role("status")).to_be_visible()
    go_to(page, cast, "groups")
    expect(page.locator("[data-group=Geometry]")).to_have_attribute("data-waiting", "2")
    page.locator("[data-group=Geometry] summary").click()
    assert accessibility_violations(page) == []
    page.locator("[data-group=Geometry] form[action$=delete] button").click()
    expect(page.locator("[data-group]")).to_have_count(0)
    assert not QueueEntry.objects.open().filter(lane__arm="chosen").exists()

    go_to(page, cast, "snapshots")
    page.locator("details:has([name=tags]) > summary").click()
    page.locator("input[name=tags][value=geometry]").check()
    page.evaluate("scrollTo(0, 0)")  # the header covers controls of a scrolled page
    assert accessibility_violations(page) == []

    go_to(page, cast, "trace", Settlement.objects.get(state="settled").trace_id)
    page.locator("#reopen").click()
    expect(page.locator("#reopen")).to_have_count(0)
    assert not Settlement.objects.filter(state="settled").exists()


@pytest.mark.parametrize(("width", "height"), FORMS)
def test_lead_samples_an_import_and_prepares_gold(cast: Personas, visit: Visit, width: int, height: int) -> None:
    settled = Settlement.objects.get(state="settled").trace_id
    adjudication.decide_trace(trace_id=settled, first_error=1, by=cast.lead, now=NOW)
    page = visit(cast.lead, width=width, height=height)
    go_to(page, cast, "groups")
    rule = page.locator("form[action$='rules/make']")
    rule.locator("input[name=source_name]").fill("maths.jsonl")
    rule.locator("input[name=percent]").fill("20")
    rule.locator("button[type=submit]").click()
    expect(page.locator("tr[data-rule]")).to_have_count(1)
    assert accessibility_violations(page) == []
    page.locator("tr[data-rule] button").click()
    expect(page.locator("tr[data-rule]")).to_have_count(0)

    go_to(page, cast, "traces")
    change_trace(page, settled, lambda: page.locator("select[name=reviewer]").select_option(index=1), "reviewer")
    assert AdjudicationTask.objects.get().trace_id == settled
    change_trace(page, settled, lambda: page.locator("select[name=use]").select_option("training"), "gold")
    assert Gold.objects.get().use == "training"
    change_trace(page, settled, lambda: page.locator("select[name=use]").select_option("hidden"), "use")
    assert Gold.objects.active().get().use == "hidden"
    go_to(page, cast, "gold")


def change_trace(page: Page, trace: int, fill: Callable[[], object], action: str) -> None:
    page.locator("details.actions summary").click()
    page.locator(f"input[name=trace][value='{trace}']").check()
    fill()
    page.locator(f"button[name=action][value={action}]").click()
    expect(page.get_by_role("status")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), FORMS)
def test_lead_changes_settled_traces_and_limits(cast: Personas, visit: Visit, width: int, height: int) -> None:
    settled = Settlement.objects.get(state="settled").trace_id
    page = visit(cast.lead, width=width, height=height)
    go_to(page, cast, "settings")
    page.locator("#id_overlap").fill("3")
    page.locator("#id_overlap_limit").fill("5")
    page.locator("#id_includes_settled").check()
    page.locator("form[action$=overlap] button[type=submit]").click()
    expect(page.locator("[data-changes] [data-settled='1'][data-labels='1']")).to_be_visible()
    assert accessibility_violations(page) == []
    go_to(page, cast, "settings")
    page.locator("#id_open_limit").fill("2")
    page.locator("#id_traces_per_day").fill("40")
    page.locator("form:has(#id_open_limit) button[type=submit]").first.click()
    expect(page.get_by_role("status")).to_be_visible()
    project = Project.objects.get(pk=cast.project.pk)
    assert (project.open_limit, project.traces_per_day) == (2, 40)

    go_to(page, cast, "trace", settled)
    page.locator("#request-label").click()
    expect(page.get_by_role("status")).to_be_visible()
    assert Settlement.objects.get(trace=settled).state == "asked"
    page.locator("[data-adjudicate]").click()
    expect(page.locator("form[data-adjudication][data-ready]")).to_be_visible()
    assert accessibility_violations(page) == []
    page.locator("input[name=first_error][value='2']").check()
    page.locator("[data-decide]").click()
    expect(page.locator("form[data-adjudication]")).to_have_count(0)
    assert Settlement.objects.get(trace=settled).state == "decided"


@pytest.mark.parametrize(("width", "height"), FORMS)
def test_lead_pays_removes_restores_and_reads_the_log(cast: Personas, visit: Visit, width: int, height: int) -> None:
    page = visit(cast.lead, width=width, height=height)
    go_to(page, cast, "pay")
    page.locator("input[name=amount]").fill("100")
    page.locator("form[action$=budget] button").click()
    expect(page.get_by_role("status")).to_be_visible()
    with page.expect_download():
        page.locator("a[download]").click()

    member = cast.membership(cast.annotator)
    go_to(page, cast, "members")
    page.goto(reverse("dashboard:remove_member", args=[cast.project.slug, member.pk]))
    assert accessibility_violations(page) == []
    page.locator("[data-remove]").click()
    expect(page.locator(f"[data-removed='{member.pk}']")).to_be_visible()
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    go_to(page, cast, "annotator", rater.pk)
    expect(page.locator("[data-removed]")).to_be_visible()
    go_to(page, cast, "members")
    page.locator(f"[data-removed='{member.pk}'] button").click()
    expect(page.locator("[data-removed]")).to_have_count(0)

    go_to(page, cast, "audit")
    for event in ("download.made", "member.removed", "member.restored", "project.budget_set"):
        expect(page.locator(f"tr[data-event='{event}']")).to_be_visible()
    with page.expect_download() as download:
        page.locator("a[download]").click()
    assert "member.restored" in download.value.path().read_text()
