"""The list of traces: its filters, and its constant cost."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling import queue
from labeling.models import Gold, Rater, Settlement, Trace
from labeling.quality import resolve
from tests import factories
from tests.labeling.quality import submitted_work
from tests.labeling.quality.test_set_aside import put_aside
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    return personas.cast


def list_traces(client: Client, cast: Personas, query: str = "") -> list[int]:
    response = client.get(reverse("dashboard:traces", args=[cast.project.slug]) + query)
    return [row.trace.pk for row in response.context["traces"]]


def settle(trace: Trace, state: str) -> None:
    Settlement.objects.create(
        trace=trace, project=trace.project, state=state, n_readings=3, changed_at=factories.NOW, is_due=False
    )


@pytest.mark.fault
def test_traces_are_filtered_by_every_field(client: Client, cast: Personas) -> None:
    project = cast.project
    problem = factories.make_problem(project, "How many Eggs?", domain="Algebra")
    eggs = factories.make_trace(project, problem=problem, ref="e-1", source=factories.make_source(project))
    gold, gone, contested = (factories.make_trace(project) for _ in range(3))
    factories.make_trace(factories.make_project())
    Gold.objects.create(trace=gold, use="hidden", accepted_first_errors=[1], made_at=factories.NOW)
    queue.withdraw_traces(trace_ids=[gone.pk], now=factories.NOW, reason="twice", by=None)
    settle(contested, "contested")
    factories.make_assignment(Rater.objects.get(project=project), eggs)
    client.force_login(cast.reviewer)
    every = sorted([eggs.pk, gold.pk, gone.pk, contested.pk], reverse=True)
    expected = {
        "": every,
        "?state=contested": [contested.pk],
        "?state=gold": [gold.pk],
        "?state=withdrawn": [gone.pk],
        "?state=in_hand": [eggs.pk],
        "?state=unread": [each for each in every if each not in (gone.pk, contested.pk)],
        "?q=eggs": [eggs.pk],
        "?q=e-1": [eggs.pk],
        f"?q=%23{gold.pk}": [gold.pk],
        "?domain=algebra": [eggs.pk],
        f"?source={eggs.source_id}": [eggs.pk],
        "?state=nonsense": every,
        "?q=%27%22%25": [],
        "?q=%00": every,
        "?q=9999999999999999999999": [],
    }
    assert {query: list_traces(client, cast, query) for query in expected} == expected


@pytest.mark.fault
def test_filters_by_annotator_and_label_match_one_submission(client: Client, cast: Personas) -> None:
    one, other = submitted_work.make_raters(cast.project, 2)
    cast.project.overlap = 2
    cast.project.save()
    both, differ, alone, given_up = (factories.make_trace(cast.project) for _ in range(4))
    for rater, trace, ratings in (
        *((one, both, [-1]), (other, both, [-1])),
        *((one, differ, [-1]), (other, differ, [1, 1, 1])),
        (one, alone, [1, 1, 1]),
    ):
        submitted_work.submit_trace(rater, trace, ratings)
    submitted_work.give_up(other, given_up, [1])
    resolve.resolve_due_traces(now=factories.NOW)
    client.force_login(cast.lead)
    of_one, of_other = f"rater={one.pk}", f"rater={other.pk}"
    expected = {
        of_one: {both, differ, alone},
        of_other: {both, differ, given_up},
        "label=error": {both, differ},
        "label=no_error": {differ, alone},
        "label=gave_up": {given_up},
        "label=settled_error": {both},
        "label=settled_no_error": set(),
        f"{of_one}&label=error": {both, differ},
        f"{of_other}&label=error": {both},
        f"{of_other}&label=no_error": {differ},
        f"{of_other}&label=settled_error": {both},
        f"{of_one}&label=gave_up": set(),
    }
    expected_keys = {query: {trace.pk for trace in traces} for query, traces in expected.items()}
    assert {query: set(list_traces(client, cast, f"?{query}")) for query in expected} == expected_keys
    put_aside(one)
    found = {query: set(list_traces(client, cast, f"?{query}")) for query in (of_one, "label=error", "label=no_error")}
    assert found == {of_one: {both.pk, differ.pk, alone.pk}, "label=error": {both.pk}, "label=no_error": {differ.pk}}


def test_search_costs_the_same_for_many(client: Client, cast: Personas) -> None:
    lane = factories.make_lane(cast.project)
    client.force_login(cast.lead)
    costs = []
    for n in (3, 60):
        for _ in range(n):
            trace = factories.make_trace(cast.project, ["One."])
            factories.make_entry(lane, trace)
            settle(trace, "reading")
        with CaptureQueriesContext(connection) as queries:
            rows = list_traces(client, cast)
        costs.append(len(queries))
        assert len(rows) == min(n, 50)
    assert costs[0] == costs[1] <= 14
