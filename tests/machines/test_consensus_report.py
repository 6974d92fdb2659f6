"""What two machines agree on: the kept share, and how often people agree with what is kept and dropped."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from labeling.models import Project
from machines import consensus_report
from machines.consensus_report import ComparedTrace, report_on_traces
from tests import factories
from tests.api import api_clients
from tests.labeling.quality import submitted_work
from tests.machines import machine_labels
from tests.people.personas import LoggedInPersonas


def compare(*rows: tuple[int, int, int | None]) -> list[ComparedTrace]:
    return [ComparedTrace(problem, *row) for problem, row in enumerate(rows)]


def test_shares_are_counted() -> None:
    rows = [(1, 1, 1)] * 6 + [(2, 2, 0)] * 2 + [(1, -1, 1)] * 3 + [(1, 0, 0)] + [(3, 3, None)] * 4
    report = report_on_traces(compare(*rows))
    assert (report.n_traces, report.n_kept, report.n_kept_with_people, report.n_dropped_with_people) == (16, 12, 8, 4)
    assert report.kept.value == 12 / 16
    assert report.precision_kept.value == 6 / 8
    assert (report.first_dropped.value, report.second_dropped.value) == (3 / 4, 1 / 4)
    assert (report.first_overall.value, report.second_overall.value) == (9 / 12, 7 / 12)
    assert report.precision_kept.interval is not None
    assert report.precision_kept.counts.problems == 8


def test_nothing_in_common_has_no_value() -> None:
    report = report_on_traces([])
    assert (report.n_traces, report.kept.value, report.precision_kept.value) == (0, None, None)


@pytest.fixture
def labeled(personas: LoggedInPersonas) -> Project:
    """Six traces: both machines agree on four of them, and people with them on three of these."""
    project = personas.cast.project
    monte_carlo, judge = (factories.make_machine_rater(project, name) for name in ("Monte Carlo: mc", "judge: c"))
    errors = [(1, 1, 1), (None, None, None), (0, 0, 0), (2, 2, 1), (1, 0, 1), (None, 2, 2)]
    for first, second, human in errors:
        trace = factories.make_trace(project)
        machine_labels.label_by_machine(monte_carlo, {trace: first})
        machine_labels.label_by_machine(judge, {trace: second})
        machine_labels.settle(submitted_work.make_raters(project, 2), trace, human)
    return project


@pytest.mark.fault
@pytest.mark.django_db
def test_page_api_and_command_show_the_same(labeled: Project, personas: LoggedInPersonas) -> None:
    machines = consensus_report.list_machines(labeled)
    assert [machine.machine for machine in machines] == ["Monte Carlo: mc", "judge: c"]
    first, second = machines
    page = personas.client("lead").get(
        reverse("dashboard:machine_consensus", args=[labeled.slug]), {"first": first.pk, "second": second.pk}
    )
    report = page.context["report"]
    assert (report.n_traces, report.n_kept, report.n_kept_with_people, report.n_dropped_with_people) == (6, 4, 4, 2)
    assert (report.precision_kept.value, report.first_dropped.value, report.second_dropped.value) == (0.75, 0.5, 0.5)
    assert 'data-figure="precision_kept"' in page.content.decode()
    address = reverse("api:machine_consensus", args=[labeled.slug])
    program = api_clients.make_client(personas.cast.engineer)
    answer = program.get(address, {"first": first.machine, "second": second.labeler or ""}).json()
    assert (answer["n_kept"], answer["precision_kept"]["value"]) == (4, 0.75)
    assert program.get(address, {"first": "x", "second": "y"}).status_code == 422
    out = StringIO()
    names = ["--machine", first.machine, "--machine", second.machine]
    call_command("judge", "consensus", "--project", labeled.slug, *names, stdout=out)
    shown: dict[str, Any] = json.loads(out.getvalue())
    assert (shown["n_kept"], shown["precision_kept"]["value"]) == (4, 0.75)
    with pytest.raises(CommandError):
        call_command("judge", "consensus", "--project", labeled.slug, "--machine", "x", stdout=out)
