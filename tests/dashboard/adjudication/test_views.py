"""Deciding where raters differ: the oldest first, everything beside it, and a decision that is kept."""

import datetime as dt
import re

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from events.models import Event
from labeling.models import Consensus, Gold, Settlement, Trace
from labeling.quality.adjudication import list_contested
from labeling.quality.gold import make_gold
from labeling.quality.withdrawal import withdraw_traces
from tests import factories
from tests.factories import NOW
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Personas:
    return make_personas()


def contest(cast: Personas, *, minutes: int = 0, first_errors: tuple[int | None, ...] = (0, 1, None)) -> Trace:
    trace = factories.make_trace(cast.project, ["One.", "Two.", "Three."])
    for first_error in first_errors:
        ratings = [1, 1, 1] if first_error is None else [*[1] * first_error, -1]
        submitted_work.submit_trace(factories.make_rater(cast.project), trace, ratings)
    Settlement.objects.filter(trace=trace).update(
        state="contested", reason="differ_at_limit", differs_at=0, changed_at=NOW + dt.timedelta(minutes=minutes)
    )
    return trace


def page(client: Client, cast: Personas, trace: Trace | None = None, query: str = "") -> str:
    name, more = ("dashboard:adjudication_case", [trace.pk]) if trace else ("dashboard:adjudication", [])
    return str(client.get(reverse(name, args=[cast.project.slug, *more]) + query).content.decode())


def decide(client: Client, cast: Personas, trace: Trace, **form: str) -> int:
    return int(client.post(reverse("dashboard:decide_case", args=[cast.project.slug, trace.pk]), form).status_code)


def test_adjudicate_shows_what_has_waited_longest_with_all_its_readings(client: Client, cast: Personas) -> None:
    client.force_login(cast.reviewer)
    assert "Nothing is contested" in page(client, cast)
    younger, older = contest(cast, minutes=5), contest(cast)
    shown = page(client, cast)
    assert f"Trace {older.pk}" in shown
    assert [f"error {n}</td>" in shown for n in (1, 2, 3)] == [True, True, False]
    assert f"Trace {younger.pk}" in page(client, cast, younger)


def test_overview_sends_nobody_to_decide_what_was_withdrawn(client: Client, cast: Personas) -> None:
    trace = contest(cast)
    client.force_login(cast.lead)
    overview = reverse("dashboard:overview", args=[cast.project.slug])
    assert "Contested trace" in client.get(overview).content.decode()
    withdraw_traces(project=cast.project, trace_ids=[trace.pk], reason="broken", by=cast.lead, now=NOW)
    assert "Contested trace" not in client.get(overview).content.decode()


def test_decide_is_kept_as_consensus_and_event_and_opens_the_next(client: Client, cast: Personas) -> None:
    trace = contest(cast)
    client.force_login(cast.reviewer)
    assert decide(client, cast, trace) == 422
    assert decide(client, cast, trace, first_error="7") == 422
    assert not Consensus.objects.exists()
    assert decide(client, cast, trace, first_error="1", note="Two is wrong.") == 302
    kept = Consensus.objects.get()
    assert (kept.first_error, kept.source, kept.note, kept.made_by) == (1, "person", "Two is wrong.", cast.reviewer)
    assert Event.objects.filter(what="trace.decided", by=cast.reviewer.pk).count() == 1
    assert not list_contested(project_id=cast.project.pk).exists()
    assert not Gold.objects.exists()


def test_decide_makes_gold_and_corrects_what_says_otherwise(client: Client, cast: Personas) -> None:
    fresh, known = contest(cast), contest(cast)
    make_gold(trace=known, use="training", accepted_first_errors=[None], by=cast.lead, now=NOW)  # type: ignore[arg-type]  # its value
    client.force_login(cast.lead)
    for trace in (fresh, known):
        assert decide(client, cast, trace, first_error="2", becomes_gold="on") == 302
    accepted = {gold.trace_id: (gold.use, gold.accepted_first_errors) for gold in Gold.objects.all()}
    assert accepted == {fresh.pk: ("hidden", [2]), known.pk: ("training", [2])}


def test_send_back_asks_for_one_more_reading(client: Client, cast: Personas) -> None:
    trace = contest(cast)
    client.force_login(cast.reviewer)
    address = reverse("dashboard:send_case_back", args=[cast.project.slug, trace.pk])
    assert client.post(address, {"note": "Read it again."}).status_code == 302
    assert Settlement.objects.get(trace=trace).state == "asked"
    assert Event.objects.filter(what="trace.sent_back").exists()


def test_who_decides_what_somebody_else_has_decided_meanwhile_is_told_and_shown_it(
    client: Client, cast: Personas
) -> None:
    trace = contest(cast)
    client.force_login(cast.reviewer)
    form = {"first_error": "1", "seen": seen(page(client, cast, trace))}
    assert decide(client, cast, trace, **form) == 302
    client.force_login(cast.lead)
    address = reverse("dashboard:decide_case", args=[cast.project.slug, trace.pk])
    refused = client.post(address, {**form, "first_error": "2"})
    told = refused.content.decode()
    assert (refused.status_code, "A person decided. Look again" in told) == (422, True)
    assert Consensus.objects.get().first_error == 1
    assert decide(client, cast, trace, first_error="2", seen=seen(told)) == 302
    assert Consensus.objects.order_by("revision").values_list("first_error", flat=True)[1] == 2


def seen(shown: str) -> str:
    found = re.search(r'name="seen" value="([^"]+)"', shown)
    assert found
    return found[1]


def test_names_are_hidden_until_they_are_asked_for_by_who_may_see_them(client: Client, cast: Personas) -> None:
    trace = contest(cast)
    names = [str(each.rater.user) for each in trace.assignments.select_related("rater__user")]
    for person, query, are_seen in (
        (cast.lead, "", False),
        (cast.lead, "?names=1", True),
        (cast.reviewer, "?names=1", False),
    ):
        client.force_login(person)
        shown = page(client, cast, trace, query)
        assert {name in shown for name in names} == {are_seen}


def test_trace_of_another_project_is_not_there(client: Client, cast: Personas) -> None:
    trace = contest(make_personas("other-"))
    client.force_login(cast.owner)
    for name in ("adjudication_case", "decide_case", "send_case_back"):
        address = reverse(f"dashboard:{name}", args=[cast.project.slug, trace.pk])
        response = client.get(address) if name == "adjudication_case" else client.post(address, {"first_error": "none"})
        assert response.status_code == 404


@pytest.mark.parametrize("others", [1, 6])
def test_adjudicate_costs_the_same_for_many(
    others: int, client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(others):
        contest(cast, minutes=number)
    client.force_login(cast.reviewer)
    with django_assert_num_queries(11):
        page(client, cast)
