"""A lead sets the labels of an annotator aside, reads the preview, confirms, and undoes it."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from jobs import runner
from jobs.models import Job
from labeling import queue
from labeling.models import QueueEntry, Rater, Settlement
from labeling.quality import project_stats, set_aside
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
    """A project with three settled traces, labeled by the annotator and another rater."""
    cast = make_personas()
    other = factories.make_user("other")
    members.add_member(project=cast.project, user=other, role=Role.ANNOTATOR, now=NOW)
    traces = [factories.make_trace(cast.project) for _ in range(3)]
    ids = [each.pk for each in traces]
    queue.enqueue(project_id=cast.project.pk, arm="uniform", trace_ids=ids, slots=2, now=NOW)
    QueueEntry.objects.update(slots_left=0)
    for trace in traces:
        for rater in Rater.objects.filter(project=cast.project).order_by("pk"):
            submitted_work.submit_trace(rater, trace, [1, -1])
    resolve_traces(project_id=cast.project.pk, trace_ids=ids, now=NOW)
    return cast


def run_job() -> None:
    job = Job.objects.filter(kind=set_aside.KIND).latest("pk")
    assert runner.run_job(job.pk, set_aside.chunks) == "done"


@pytest.mark.parametrize(("width", "height"), FORMS)
def test_lead_sets_labels_aside_and_undoes_it(cast: Personas, visit: Visit, width: int, height: int) -> None:
    page = visit(cast.lead, width=width, height=height)
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    address = reverse("dashboard:annotator", args=[cast.project.slug, rater.pk])
    page.goto(address)
    page.locator("a[data-set-aside]").click()
    expect(page.locator("[data-preview]")).to_be_visible()
    assert find_faults(page, page.url) == []
    page.locator("#id_reason").fill("Every trace rated positive.")
    page.locator("[data-preview]").click()
    expect(page.locator("[data-figure=n_reopened]")).to_have_text("3")
    expect(page.locator("[data-figure=n_missing]")).to_have_text("3")
    assert accessibility_violations(page) == []
    page.locator("[data-confirm]").click()
    expect(page.locator("tr[data-set-aside][data-running=yes]")).to_be_visible()
    run_job()
    assert set(Settlement.objects.values_list("state", flat=True)) == {"asked"}
    assert find_faults(page, address) == []
    expect(page.locator("td[data-set-aside-label] s")).to_have_count(3)
    trace = Settlement.objects.order_by("pk")[0]
    assert find_faults(page, reverse("dashboard:trace", args=[cast.project.slug, trace.pk])) == []
    expect(page.locator("[data-set-aside-label]")).to_have_count(1)
    page.goto(address)
    page.locator("tr[data-set-aside] button").click()
    expect(page.locator("tr[data-set-aside] button")).to_have_count(0)
    run_job()
    assert set(Settlement.objects.values_list("state", flat=True)) == {"settled"}
    project_stats.compute_project_stats(project_id=cast.project.pk, now=NOW)
    agreement = reverse("dashboard:agreement", args=[cast.project.slug])
    assert find_faults(page, f"{agreement}?rater={rater.pk}&choice=without") == []
    expect(page.locator("[data-affected]")).to_have_attribute("data-affected", "3")
    assert accessibility_violations(page) == []
