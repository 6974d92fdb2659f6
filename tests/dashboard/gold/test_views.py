"""Gold as its keepers see it: how it was met, corrected and retired by verbs alone."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from events.models import Event
from labeling import onboarding
from labeling.models import Gold
from labeling.models.gold import GoldUse
from labeling.quality.gold import correct_gold, make_gold
from tests import factories
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def cast() -> Personas:
    return make_personas()


def add_gold(cast: Personas, *accepted: int | None) -> Gold:
    trace = factories.make_trace(cast.project)
    return onboarding.make_served_gold(
        trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=accepted, by=cast.reviewer, now=NOW
    )


def meet(gold: Gold, first_error: int | None, verdict: str) -> None:
    rater = factories.make_rater(gold.trace.project)
    assignment = factories.make_assignment(rater, gold.trace, purpose="gold")
    gold.answers.create(
        assignment=assignment,
        project=gold.trace.project,
        rater=rater,
        use=gold.use,
        first_error=first_error,
        verdict=verdict,
        answered_at=NOW,
    )


def test_listed_says_how_each_was_met(client: Client, cast: Personas) -> None:
    met, unmet = add_gold(cast, 1, None), add_gold(cast, 0)
    for first_error, verdict in ((1, "right"), (None, "right"), (0, "blamed"), (None, "gave_up")):
        meet(met, first_error, verdict)
    elsewhere = factories.make_trace(factories.make_project())
    make_gold(trace=elsewhere, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    client.force_login(cast.lead)
    response = client.get(reverse("dashboard:gold", args=[cast.project.slug]))
    rows = response.context["golds"].rows
    assert [(row.gold.pk, row.accepted, row.met.n, row.met.right, row.share, row.interval) for row in rows] == [
        (unmet.pk, "step 1", 0, 0, "–", ""),
        (met.pk, "step 2, no error", 4, 2, ".50", "[.15, .85]"),
    ]
    assert str(cast.reviewer) in response.content.decode()


@pytest.mark.parametrize("n", [2, 55])
def test_listed_costs_the_same_for_many(
    n: int, client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(n):
        trace = factories.make_trace(cast.project, ["One."])
        Gold.objects.create(trace=trace, use="hidden", accepted_first_errors=[0], made_at=NOW)
    client.force_login(cast.lead)
    address = reverse("dashboard:gold", args=[cast.project.slug])
    with django_assert_num_queries(7):
        response = client.get(address)
    assert len(response.context["golds"].rows) == min(n, 50)
    older = response.context["rows"].older
    assert bool(older) == (n > 50)
    assert not older or len(client.get(address + older).context["golds"].rows) == n - 50


def test_correct_judges_answers_anew_and_keeps_who_did_it(client: Client, cast: Personas) -> None:
    gold = add_gold(cast, 0)
    meet(gold, 1, "missed")
    client.force_login(cast.reviewer)
    told = {"accepted_first_errors": ["1"], "explanation": "The <b>sign</b>."}
    response = client.post(
        reverse("dashboard:correct_gold_trace", args=[cast.project.slug, gold.pk]), told, follow=True
    )
    gold.refresh_from_db()
    assert (gold.accepted_first_errors, gold.explanation) == ([1], told["explanation"])
    assert gold.answers.get().verdict == "right"
    assert "1 answer is judged otherwise now" in response.content.decode()
    assert "<b>sign" not in response.content.decode()
    assert Event.objects.filter(what="gold.corrected", by=cast.reviewer.pk).exists()


def test_correct_keeps_what_is_said_of_each_step_for_training(client: Client, cast: Personas) -> None:
    gold = add_gold(cast, 1)
    first, second = (step.options.get(position=0).pk for step in gold.trace.steps.order_by("position")[:2])
    address = reverse("dashboard:correct_gold_trace", args=[cast.project.slug, gold.pk])
    client.force_login(cast.lead)
    told = {
        "accepted_first_errors": ["1"],
        f"rating_{first}": "1",
        f"why_{first}": "It counts.",
        f"why_{second}": "No.",
    }
    assert client.post(address, told).status_code == 302
    assert set(gold.ratings.values_list("option", "rating", "explanation")) == {
        (first, 1, "It counts."),
        (second, -1, "No."),  # the first error is negative without being said so
    }
    shown = client.get(reverse("dashboard:gold_trace", args=[cast.project.slug, gold.pk])).content.decode()
    assert "It counts." in shown
    correct_gold(gold=gold, accepted_first_errors=[0], by=None, now=NOW)  # as adjudication does
    assert list(gold.ratings.values_list("option", "rating")) == [(second, -1)]
    client.post(address, {"accepted_first_errors": ["none"]})
    assert not gold.ratings.exists()


@pytest.mark.parametrize(
    ("accepted", "rating", "why"),
    [("none", "-1", ""), ("1", "-1", ""), ("0", "1", ""), ("1", "", "Because."), ("1", "7", "")],
)
def test_correct_refuses_what_contradicts_itself(
    accepted: str, rating: str, why: str, client: Client, cast: Personas
) -> None:
    gold = add_gold(cast, 1)
    first = gold.trace.steps.get(position=0).options.get(position=0).pk
    told = {"accepted_first_errors": [accepted], f"rating_{first}": rating, f"why_{first}": why}
    client.force_login(cast.lead)
    address = reverse("dashboard:correct_gold_trace", args=[cast.project.slug, gold.pk])
    assert client.post(address, told).status_code == 422
    assert not gold.ratings.exists()


@pytest.mark.parametrize("told", [{}, {"accepted_first_errors": ["99"]}, {"accepted_first_errors": ["x"]}])
def test_correct_refuses_what_cannot_be_known(told: dict[str, list[str]], client: Client, cast: Personas) -> None:
    gold = add_gold(cast, 0)
    client.force_login(cast.lead)
    response = client.post(reverse("dashboard:correct_gold_trace", args=[cast.project.slug, gold.pk]), told)
    gold.refresh_from_db()
    assert (response.status_code, gold.accepted_first_errors) == (422, [0])


def test_retire_takes_it_out_of_the_queue_once(client: Client, cast: Personas) -> None:
    gold = add_gold(cast, 0)
    assert gold.trace.queue_entries.filter(is_open=True).exists()
    client.force_login(cast.lead)
    address = reverse("dashboard:retire_gold_trace", args=[cast.project.slug, gold.pk])
    for said in ("Its answers stay", "retired already"):
        assert said in client.post(address, follow=True).content.decode()
    gold.refresh_from_db()
    assert gold.retired_at is not None
    assert not gold.trace.queue_entries.filter(is_open=True).exists()
    assert (
        "Retire it"
        not in client.get(reverse("dashboard:gold_trace", args=[cast.project.slug, gold.pk])).content.decode()
    )


@pytest.mark.parametrize("name", ["gold_trace", "correct_gold_trace", "retire_gold_trace"])
def test_pages_find_no_gold_of_another_project(name: str, client: Client, cast: Personas) -> None:
    trace = factories.make_trace(factories.make_project())
    gold = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    client.force_login(cast.owner)
    address = reverse(f"dashboard:{name}", args=[cast.project.slug, gold.pk])
    told = {"accepted_first_errors": ["none"]}
    assert (client.get(address) if name == "gold_trace" else client.post(address, told)).status_code == 404
    gold.refresh_from_db()
    assert (gold.accepted_first_errors, gold.retired_at) == ([0], None)


@pytest.mark.parametrize("n", [1, 8])
def test_one_shows_its_steps_at_the_same_cost(
    n: int, client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    trace = factories.make_trace(cast.project, ["<script>alert(1)</script> $x^2$"] * n)
    gold = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    client.force_login(cast.lead)
    with django_assert_num_queries(9):
        shown = client.get(reverse("dashboard:gold_trace", args=[cast.project.slug, gold.pk])).content.decode()
    assert shown.count("&lt;script&gt;alert(1)") == n
    assert "<script>alert" not in shown


def test_screening_set_is_shown_adjusted_and_taken(
    client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(cast.lead)
    address = reverse("dashboard:screening_set", args=[cast.project.slug])
    assert "Nothing to draw from yet" in client.get(address).content.decode()
    made = [add_gold(cast, place) for place in (None, None, None, 0)]
    shown = client.get(address, {"none": 1, "early": 2}).context["shown"]
    assert [(each.key, each.wanted, each.chosen, each.there) for each in shown.strata] == [
        ("none", 1, 1, 3),
        ("early", 2, 1, 1),
        ("middle", 0, 0, 0),
        ("late", 0, 0, 0),
    ]
    assert shown.is_short
    assert (shown.n_hidden_drawn, shown.n_hidden_left) == (2, 2)
    assert (
        "Drawn from hidden gold: 2 of 4, so that 2 would stay"
        in client.get(address, {"none": 1, "early": 2}).content.decode()
    )
    listed = client.get(reverse("dashboard:gold", args=[cast.project.slug]))
    assert [n for _name, n in listed.context["hidden"]] == [3, 1, 0, 0]
    lopsided = client.get(address, {"none": 3, "early": 1})
    assert "That is enough to pass without reading" in lopsided.content.decode()
    with CaptureQueriesContext(connection) as few:
        client.get(address)
    for place in (0, 1, 2) * 3:
        add_gold(cast, place)
    with django_assert_num_queries(len(few)):
        client.get(address, {"n": 12, "round": 2})
    assert client.post(f"{address}adopt", {"trace": ["x", "999999"]}).status_code == 422
    chosen = [made[0].trace_id, made[3].trace_id]
    assert client.post(f"{address}adopt", {"trace": chosen}).status_code == 302
    assert set(Gold.objects.filter(use="screening").values_list("trace_id", flat=True)) == set(chosen)
    rows = client.get(address, {"none": 0, "early": 1}).context["shown"].rows
    assert [(row.trace.pk, str(row.whence), row.is_chosen) for row in rows] == [
        (chosen[1], "in the set now", True),
        (chosen[0], "in the set now", False),
    ]
