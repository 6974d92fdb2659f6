"""The consensus filter as a route: what both machines settle, what goes to people, and how a route ends."""

import datetime as dt
import json
from functools import partial
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from events.models import Event
from jobs import runner
from jobs.models import Job
from labeling.models import LicensedLabel, Project, Trace
from labeling.models.licensed_label import LicensedRole
from labeling.quality import resolve
from machines import licenses, passports, routes
from machines.models import ConsensusRoute, MachineLicense
from machines.routes import RouteRefused
from prm import generations
from tests import factories
from tests.api import api_clients
from tests.machines import machine_labels, route_project
from tests.machines.test_licenses import queue_traces
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
LATER = factories.NOW + dt.timedelta(hours=1)


def label_by_both(project: Project, n: int = 30) -> tuple[ConsensusRoute, list[Trace], list[Trace]]:
    """Let two machines agree on the first traces and differ on the others, and open and apply a route."""
    first, second = machines = route_project.make_machines(project)
    agreed, differing = queue_traces(project, n), queue_traces(project, n)
    machine_labels.label_by_machine(first, dict.fromkeys([*agreed, *differing]))
    machine_labels.label_by_machine(second, dict.fromkeys(agreed) | dict.fromkeys(differing, 1))
    route = route_project.open_route(project, machines)
    licenses.apply_licenses(now=factories.NOW)
    resolve.resolve_due_traces(now=factories.NOW)
    return route, agreed, differing


@pytest.mark.fault
def test_agreed_traces_are_machine_assisted_and_the_others_stay_with_people() -> None:
    project = factories.make_project()
    route, agreed, _differing = label_by_both(project)
    labels = LicensedLabel.objects.all()
    assert {label.trace_id for label in labels} == {trace.pk for trace in agreed}
    n_retests = labels.filter(role=LicensedRole.RETEST).count()
    assert 0 < n_retests < len(agreed)
    assert len(licenses.list_results(project.pk)) == len(agreed) - n_retests
    assert set(licenses.name_agreeing_machines(project.pk).values()) == {"Monte Carlo: m"}
    described = routes.describe_route(route)
    assert (described["n_kept"], described["n_retests"]) == (len(agreed) - n_retests, n_retests)
    assert generations.load_loop_rules(project).acquisition == "disagreement"
    assert Event.objects.filter(what="consensus_route.opened", project=project.pk).count() == 1
    assert licenses.apply_licenses(now=LATER) == 0


def test_route_settles_nothing_where_the_bound_is_too_low() -> None:
    project = factories.make_project()
    before = generations.load_loop_rules(project).acquisition
    route = route_project.open_route(project, bound=0.85, puts_disagreement_first=False)
    assert not route.licenses.exists()
    assert generations.load_loop_rules(project).acquisition == before


@pytest.mark.fault
def test_evidence_is_that_of_the_pair() -> None:
    project = factories.make_project(overlap=2)
    people = [factories.make_rater(project) for _ in range(2)]
    first, second = (factories.make_machine_rater(project, name) for name in ("a", "b"))
    traces = [factories.make_trace(project) for _ in range(6)]
    for machine, ends in ((first, [None, None, None, 1, 1, 2]), (second, [None, None, 0, 1, 2, 2])):
        machine_labels.label_by_machine(machine, dict(zip(traces, ends, strict=True)))
    for trace, first_error in zip(traces, [None, 1, None, 1, 1, 2], strict=True):
        machine_labels.settle(people, trace, first_error)
    strata = {row["stratum"]["says_error"]: row for row in routes.build_pair_strata(first, second)}
    assert (strata[False]["n_judged"], strata[False]["agreement"]) == (2, 0.5)
    assert (strata[True]["n_judged"], strata[True]["agreement"]) == (2, 1.0)


def test_route_needs_two_machines_with_passports() -> None:
    project = factories.make_project()
    first, second = route_project.make_machines(project)
    third = factories.make_machine_rater(project, "judge: third")
    request = partial(routes.request_route, first=first, by=None, now=factories.NOW)
    for wrong in (first, third):
        with pytest.raises(RouteRefused):
            request(second=wrong)
    for promised, share in ((0.5, 0.1), (0.9, 0.01)):
        with pytest.raises(RouteRefused):
            request(second=second, promised=promised, retest_share=share)
    route_project.open_route(project, (first, second))
    with pytest.raises(RouteRefused):
        request(second=second)


def test_licenses_end_with_the_passport_of_either_machine() -> None:
    project = factories.make_project()
    route, agreed, _differing = label_by_both(project, 4)
    machine_labels.expire(route.second_passport)
    assert licenses.apply_licenses(now=LATER) == 0
    assert set(MachineLicense.objects.values_list("ended_because", flat=True)) == {"expired"}
    assert LicensedLabel.objects.filter(trace__in=agreed, settled_at__isnull=False).exists()
    routes.close_route(route=route, by=None, now=LATER, returns_traces=True)
    assert not LicensedLabel.objects.active().exists()
    assert routes.find_open_route(project.pk) is None


@pytest.mark.fault
def test_lead_opens_and_closes_a_route(personas: LoggedInPersonas) -> None:
    project, lead = personas.cast.project, personas.client("lead")
    machines = route_project.make_machines(project)
    trace = queue_traces(project, 1)[0]
    for machine in machines:
        machine_labels.label_by_machine(machine, {trace: None})
    page = reverse("dashboard:machine_consensus", args=[project.slug])
    query = f"?first={machines[0].pk}&second={machines[1].pk}"
    assert 'id="route"' in lead.get(page + query).content.decode()
    assert 'id="route"' not in personas.client("engineer").get(page + query).content.decode()
    address = reverse("dashboard:open_consensus_route", args=[project.slug]) + query
    assert lead.post(address, {"promised": "0.9", "retest_share": "0"}).status_code == 422
    assert lead.post(address, {"promised": "0.9", "retest_share": "0.1"}).status_code == 302
    job = Job.objects.get(kind=routes.KIND)
    assert runner.run_job(job.pk, routes.run_route_job, clock=lambda: factories.NOW) == "done"
    route = ConsensusRoute.objects.get()
    assert (route.opened_by, route.puts_disagreement_first) == (personas.cast.lead, False)
    assert 'data-route="open"' in lead.get(page).content.decode()
    assert lead.post(reverse("dashboard:close_consensus_route", args=[project.slug, route.pk])).status_code == 302
    assert 'data-route="closed"' in lead.get(page).content.decode()


def test_program_opens_and_closes_a_route(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    first, second = route_project.make_machines(project)
    program = api_clients.make_client(personas.cast.lead)
    url = reverse("api:consensus_routes", args=[project.slug])

    def post(address: str, data: dict[str, Any]) -> Any:
        return program.post(address, json.dumps(data), content_type="application/json")

    assert post(url, {"first": "none", "second": second.machine}).status_code == 422
    requested = post(url, {"first": first.machine, "second": second.machine, "retest_share": 0.2})
    assert requested.status_code == 202
    assert runner.run_job(requested.json()["job"], routes.run_route_job) == "done"
    (listed,) = program.get(url).json()
    assert (listed["first"], listed["retest_share"], listed["closed_at"]) == (first.machine, 0.2, None)
    assert post(url, {"first": first.machine, "second": second.machine}).status_code == 422
    close = reverse("api:close_consensus_route", args=[project.slug, listed["id"]])
    assert post(close, {"returns_traces": True}).json() == {"returns_traces": True, "withdrawn": 0}


def test_command_opens_and_closes_a_route() -> None:
    project = factories.make_project()
    machines = route_project.make_machines(project)
    names = [word for machine in machines for word in ("--machine", machine.machine)]
    out = StringIO()
    call_command("machine_rater", "route", "--project", project.slug, *names, "--keep-acquisition", stdout=out)
    assert json.loads(out.getvalue())["n_strata"] == 0
    call_command("machine_rater", "close-route", "--project", project.slug, stdout=StringIO())
    for words in (["close-route"], ["route", "--machine", "x"], ["route", *names[:2]]):
        with pytest.raises(CommandError):
            call_command("machine_rater", *words, "--project", project.slug, stdout=StringIO())
    call_command("machine_rater", "history", "--machine", machines[0].machine, "--project", project.slug, stdout=out)
    assert passports.list_history(machines[0]).count() == 1
