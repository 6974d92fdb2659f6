"""A lead adds a judge, runs it, issues its passport, and licenses it in one stratum. A lead lets two machines settle
what they agree on."""

import pytest
from playwright.sync_api import expect

from jobs import runner
from jobs.models import Job, JobState
from labeling.models import LicensedLabel
from labeling.quality import resolve
from machines import licenses, passports, routes
from machines.models import JudgeRun, MachineLicense
from tests import factories
from tests.journeys.background_worker import running_worker
from tests.journeys.conftest import Visit, accessibility_violations
from tests.machines import judged_project, machine_labels, route_project
from tests.machines.chat_servers import ChatServer, always, running_chat
from tests.machines.test_licenses import queue_traces
from tests.people import personas

pytestmark = pytest.mark.django_db(transaction=True)


def run_judges_and_passports() -> None:
    for run in JudgeRun.objects.filter(state="open"):
        judged_project.run_to_end(run)
    for job in Job.objects.filter(kind=passports.KIND, state=JobState.QUEUED):
        runner.run_job(job.pk, passports.run_passport_job)


def test_lead_licenses_a_judge(visit: Visit) -> None:
    cast = personas.make_personas()
    project = cast.project
    project.overlap = 1
    project.save()
    person = factories.make_rater(project)
    for _ in range(40):
        machine_labels.settle([person], factories.make_trace(project), None)
        machine_labels.make_hidden_gold(factories.make_trace(project), None)
    waiting = queue_traces(project, 20)
    page = visit(cast.lead)
    with (
        running_chat(ChatServer(always("All steps are right. \\boxed{-1}"))) as address,
        running_worker(run_judges_and_passports),
    ):
        page.goto(f"/projects/{project.slug}/judges/")
        form = page.locator("#add")
        form.locator("[name=name]").fill("critic")
        form.locator("[name=address]").fill(address)
        form.locator("[name=model]").fill("scripted")
        form.locator("button[type=submit]").last.press("Enter")
        page.locator("#run-judge").press("Enter")
        expect(page.locator("tr[data-state=done]")).to_have_count(1)
        page.goto(f"/projects/{project.slug}/judges/")
        page.locator("tr[data-machine] a").click()
        assert accessibility_violations(page) == []
        page.locator("form[action$='/passport'] button").press("Enter")
        expect(page.locator("form[action$='/passport']")).to_be_visible()
        while Job.objects.unfinished().filter(kind=passports.KIND).exists():
            page.reload()
        page.reload()
        expect(page.locator("[data-passport=valid]")).to_be_visible()
        expect(page.locator("[data-judged='100']")).to_be_visible()
        assert accessibility_violations(page) == []
        form = page.locator("form[action$='/license']")
        form.locator("[name=may_settle]").select_option("True")
        form.locator("[name=promised]").select_option("0.8")
        form.locator("button[type=submit]").press("Enter")
        expect(page.locator("tr[data-license=active]")).to_have_count(1)
        assert accessibility_violations(page) == []
    row = MachineLicense.objects.get()
    assert (row.granted_by, row.may_settle, row.n_people, row.n_gold) == (cast.lead, True, 40, 40)
    assert licenses.apply_licenses(now=factories.NOW) == len(waiting)
    assert LicensedLabel.objects.filter(license=row.pk).count() == len(waiting)


def test_lead_opens_a_consensus_route(visit: Visit) -> None:
    cast = personas.make_personas()
    project = cast.project
    machines = route_project.make_machines(project)
    agreed, differing = queue_traces(project, 8), queue_traces(project, 2)
    for machine, first_error in zip(machines, (None, 1), strict=True):
        machine_labels.label_by_machine(machine, dict.fromkeys(agreed) | dict.fromkeys(differing, first_error))
    page = visit(cast.lead)
    page.goto(f"/projects/{project.slug}/judges/agreement")
    for name, machine in zip(("first", "second"), machines, strict=True):
        page.locator(f"[name={name}]").select_option(str(machine.pk))
    page.locator("form:has([name=first]) button[type=submit]").press("Enter")
    expect(page.locator("[data-traces='10'][data-kept='8']")).to_be_visible()
    page.locator("form:has([name=promised]) button[type=submit]").press("Enter")
    expect(page.locator("[data-message]")).to_be_visible()
    job = Job.objects.get(kind=routes.KIND)
    assert runner.run_job(job.pk, routes.run_route_job, clock=lambda: factories.NOW) == JobState.DONE
    page.reload()
    expect(page.locator("tr[data-route=open]")).to_have_count(1)
    page.locator("tr[data-route=open] form button").first.press("Enter")
    expect(page.locator("tr[data-route=closed]")).to_have_count(1)
    route_project.open_route(project, machines)  # no one labeled here, so the first route settled nothing
    assert licenses.apply_licenses(now=factories.NOW) == len(agreed)
    resolve.resolve_due_traces(now=factories.NOW)
    page.reload()
    expect(page.locator("tr[data-route=open]")).to_have_count(1)
    assert accessibility_violations(page) == []
    page.locator("tr[data-route=open] [name=returns]").press("Enter")
    expect(page.locator("tr[data-route=open]")).to_have_count(0)
    assert not LicensedLabel.objects.active().exists()
