"""The list of traces: filters without a reload, and actions on many traces."""

import json
import re

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from labeling import queue
from labeling.models import QueueEntry, Trace, TraceTag
from tests import factories
from tests.journeys.conftest import Visit, accessibility_violations, violations_in_both_themes
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cast() -> Personas:
    cast = make_personas()
    for domain in ("algebra", "algebra", "geometry"):
        problem = factories.make_problem(cast.project, domain=domain)
        trace = factories.make_trace(cast.project, problem=problem)
        queue.enqueue(project_id=cast.project.pk, arm="uniform", trace_ids=[trace.pk], slots=2, now=factories.NOW)
    return cast


def rows(page: Page) -> list[str | None]:
    return [row.get_attribute("data-trace") for row in page.locator("tr[data-trace]").all()]


def test_lead_filters_tags_and_puts_traces_first(visit: Visit, cast: Personas) -> None:
    page = visit(cast.lead)
    page.goto(reverse("dashboard:traces", args=[cast.project.slug]))
    page.evaluate("document.body.dataset.sameDocument = 'yes'")
    page.get_by_label("Domain").fill("algebra")
    page.get_by_label("Domain").press("Enter")
    expect(page.locator("tr[data-trace]")).to_have_count(2)
    expect(page).to_have_url(re.compile("domain=algebra"))
    assert page.locator("body").get_attribute("data-same-document") == "yes"  # no reload

    page.locator("details.actions summary").click()
    page.locator("[data-select-all]").check()
    assert page.locator("input[name=trace]:checked").count() == 2
    assert not accessibility_violations(page), json.dumps(accessibility_violations(page))
    page.locator("input[name=tag]").fill("look again")
    page.locator("button[value=tag]").click()
    expect(page.locator("[data-tag='look again']")).to_have_count(2)
    assert TraceTag.objects.count() == 2

    page.goto(reverse("dashboard:traces", args=[cast.project.slug]))
    page.locator("select[name=tag]").select_option("look again")
    expect(page.locator("tr[data-trace]")).to_have_count(2)
    first = rows(page)[0]
    page.locator("details.actions summary").click()
    page.locator("input[name=trace]").first.check()
    page.locator("button[value=first]").click()
    expect(page.get_by_role("status")).to_be_visible()
    assert str(QueueEntry.objects.open().get(lane__arm="chosen").trace_id) == first

    page.locator("details.actions summary").click()
    page.locator("input[name=scope][value=all]").check()
    with page.expect_download() as download:
        page.locator("button[value=export]").click()
    assert download.value.path().read_text().count("\n") == 3
    page.locator("input[name=reason]").fill("twice")
    page.locator("button[value=withdraw]").click()
    expect(page.get_by_role("status")).to_be_visible()
    assert Trace.objects.available().count() == 1


def test_list_works_on_a_phone(visit: Visit, cast: Personas) -> None:
    page = visit(cast.lead, width=390)
    for name in ("traces", "groups", "pay"):
        page.goto(reverse(f"dashboard:{name}", args=[cast.project.slug]))
        if name == "traces":
            page.locator("details.actions summary").click()
        assert not violations_in_both_themes(page), name
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
