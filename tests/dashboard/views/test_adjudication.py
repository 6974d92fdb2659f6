"""Adjudication: the oldest case first, decisions, cases sent back."""

import datetime as dt
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from events.models import Event
from labeling.models import Consensus, Gold, Settlement, Trace
from labeling.quality.adjudication import list_contested
from labeling.quality.gold import make_gold
from tests import factories
from tests.factories import NOW
from tests.labeling.quality import submitted_work
from tests.people.personas import LoggedInPersonas, Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    return personas.cast


def contest(cast: Personas, *, minutes: int = 0, first_errors: tuple[int | None, ...] = (0, 1, None)) -> Trace:
    trace = factories.make_trace(cast.project, ["One.", "Two.", "Three."])
    for first_error in first_errors:
        ratings = [1, 1, 1] if first_error is None else [*[1] * first_error, -1]
        submitted_work.submit_trace(factories.make_rater(cast.project), trace, ratings)
    Settlement.objects.filter(trace=trace).update(
        state="contested", reason="differ_at_limit", differs_at=0, changed_at=NOW + dt.timedelta(minutes=minutes)
    )
    return trace


def get_page(client: Client, cast: Personas, trace: Trace | None = None, query: str = "") -> Any:
    name, more = ("dashboard:adjudication_case", [trace.pk]) if trace else ("dashboard:adjudication", [])
    return client.get(reverse(name, args=[cast.project.slug, *more]) + query)


def decide(client: Client, cast: Personas, trace: Trace, **form: str) -> Any:
    return client.post(reverse("dashboard:decide_case", args=[cast.project.slug, trace.pk]), form)


def test_page_shows_the_oldest_case_with_its_submissions(client: Client, cast: Personas) -> None:
    client.force_login(cast.reviewer)
    response = get_page(client, cast)
    assert response.context["case"] is None
    assert 'data-empty="adjudication"' in response.content.decode()
    younger, older = contest(cast, minutes=5), contest(cast)
    response = get_page(client, cast)
    assert response.context["case"]["trace"] == older
    assert [rater.error for rater in response.context["case"]["raters"]] == [1, 2, None]
    assert [step.is_split for step in response.context["case"]["steps"]] == [True, True, False]
    assert [row.trace for row, _task in response.context["queue"]] == [older, younger]
    assert get_page(client, cast, younger).context["case"]["trace"] == younger


def test_decision_becomes_consensus_and_is_logged(client: Client, cast: Personas) -> None:
    trace = contest(cast)
    client.force_login(cast.reviewer)
    assert decide(client, cast, trace).status_code == 422
    assert decide(client, cast, trace, first_error="7").status_code == 422
    assert not Consensus.objects.exists()
    assert decide(client, cast, trace, first_error="1", note="Two is wrong.").status_code == 302
    consensus = Consensus.objects.get()
    assert consensus.first_error == 1
    assert consensus.source == "person"
    assert consensus.note == "Two is wrong."
    assert consensus.made_by == cast.reviewer
    assert Event.objects.filter(what="trace.decided", by=cast.reviewer.pk).count() == 1
    assert not list_contested(project_id=cast.project.pk).exists()
    assert not Gold.objects.exists()


def test_decision_can_create_or_correct_gold(client: Client, cast: Personas) -> None:
    fresh, known = contest(cast), contest(cast)
    make_gold(trace=known, use="training", accepted_first_errors=[None], by=cast.lead, now=NOW)  # type: ignore[arg-type]  # its value
    client.force_login(cast.lead)
    for trace in (fresh, known):
        assert decide(client, cast, trace, first_error="2", becomes_gold="on").status_code == 302
    accepted = {gold.trace_id: (gold.use, gold.accepted_first_errors) for gold in Gold.objects.all()}
    assert accepted == {fresh.pk: ("hidden", [2]), known.pk: ("training", [2])}


def test_case_sent_back_waits_for_a_further_label(client: Client, cast: Personas) -> None:
    trace = contest(cast)
    client.force_login(cast.reviewer)
    address = reverse("dashboard:send_case_back", args=[cast.project.slug, trace.pk])
    assert client.post(address, {"note": "Read it again."}).status_code == 302
    assert Settlement.objects.get(trace=trace).state == "asked"
    assert Event.objects.filter(what="trace.sent_back").exists()


def test_stale_decision_is_refused_and_shows_the_current_state(client: Client, cast: Personas) -> None:
    trace = contest(cast)
    client.force_login(cast.reviewer)
    form = {"first_error": "1", "seen": read_seen(get_page(client, cast, trace))}
    assert decide(client, cast, trace, **form).status_code == 302
    client.force_login(cast.lead)
    refused = decide(client, cast, trace, **{**form, "first_error": "2"})
    assert refused.status_code == 422
    assert 'role="alert"' in refused.content.decode()
    assert refused.context["case"]["settlement"].state == "decided"
    assert Consensus.objects.get().first_error == 1
    assert decide(client, cast, trace, first_error="2", seen=read_seen(refused)).status_code == 302
    assert Consensus.objects.order_by("revision").values_list("first_error", flat=True)[1] == 2


def read_seen(response: Any) -> str:
    match = re.search(r'name="seen" value="([^"]+)"', response.content.decode())
    assert match
    return match[1]


def test_names_are_shown_on_request_to_those_who_may_see_them(client: Client, cast: Personas) -> None:
    trace = contest(cast)
    names = [str(each.rater.user) for each in trace.assignments.select_related("rater__user")]
    for person, query, are_visible in (
        (cast.lead, "", False),
        (cast.lead, "?names=1", True),
        (cast.reviewer, "?names=1", False),
    ):
        client.force_login(person)
        html = get_page(client, cast, trace, query).content.decode()
        assert {name in html for name in names} == {are_visible}


def test_case_of_another_project_is_not_found(client: Client, cast: Personas) -> None:
    trace = contest(make_personas("other-"))
    client.force_login(cast.owner)
    for name in ("adjudication_case", "decide_case", "send_case_back"):
        address = reverse(f"dashboard:{name}", args=[cast.project.slug, trace.pk])
        response = client.get(address) if name == "adjudication_case" else client.post(address, {"first_error": "none"})
        assert response.status_code == 404


@pytest.mark.fault
def test_page_costs_the_same_for_many(client: Client, cast: Personas) -> None:
    client.force_login(cast.reviewer)
    costs = []
    for n in (1, 6):
        for number in range(n):
            contest(cast, minutes=number)
        with CaptureQueriesContext(connection) as queries:
            get_page(client, cast)
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 12
