"""The gold of a project: its answers, corrections and retirement."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from charts import number_format
from events.models import Event
from labeling import gold_sets
from labeling.models import Gold
from labeling.models.gold import GoldUse
from labeling.quality.gold import correct_gold, make_gold
from tests import factories
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    return personas.cast


def add_gold(cast: Personas, *accepted: int | None) -> Gold:
    trace = factories.make_trace(cast.project)
    return gold_sets.make_served_gold(
        trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=accepted, by=cast.reviewer, now=NOW
    )


def answer(gold: Gold, first_error: int | None, verdict: str) -> None:
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


def test_list_has_the_answers_of_each_gold_trace(client: Client, cast: Personas) -> None:
    answered, unanswered = add_gold(cast, 1, None), add_gold(cast, 0)
    for first_error, verdict in ((1, "right"), (None, "right"), (0, "blamed"), (None, "gave_up")):
        answer(answered, first_error, verdict)
    elsewhere = factories.make_trace(factories.make_project())
    make_gold(trace=elsewhere, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    client.force_login(cast.lead)
    response = client.get(reverse("dashboard:gold", args=[cast.project.slug]))
    rows = response.context["golds"]
    assert [(row.gold, row.accuracy.n, row.accuracy.right) for row in rows] == [(unanswered, 0, 0), (answered, 4, 2)]
    assert rows[0].interval == ""
    assert rows[1].share == number_format.format_share(0.5)
    assert rows[1].interval
    assert str(cast.reviewer) in response.content.decode()


def test_list_costs_the_same_for_many(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    address = reverse("dashboard:gold", args=[cast.project.slug])
    costs = []
    for n in (2, 53):
        for _ in range(n):
            trace = factories.make_trace(cast.project, ["One."])
            Gold.objects.create(trace=trace, use="hidden", accepted_first_errors=[0], made_at=NOW)
        with CaptureQueriesContext(connection) as queries:
            response = client.get(address)
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 7
    assert len(response.context["golds"]) == 50
    assert len(client.get(address + response.context["rows"].older).context["golds"]) == 5


def test_correction_scores_answers_again_and_is_logged(client: Client, cast: Personas) -> None:
    gold = add_gold(cast, 0)
    answer(gold, 1, "missed")
    client.force_login(cast.reviewer)
    data = {"accepted_first_errors": ["1"], "explanation": "The <b>sign</b>."}
    response = client.post(
        reverse("dashboard:correct_gold_trace", args=[cast.project.slug, gold.pk]), data, follow=True
    )
    gold.refresh_from_db()
    assert (gold.accepted_first_errors, gold.explanation) == ([1], data["explanation"])
    assert gold.answers.get().verdict == "right"
    (message,) = response.context["messages"]
    assert "1" in str(message)
    assert "<b>sign" not in response.content.decode()
    assert Event.objects.filter(what="gold.corrected", by=cast.reviewer.pk).exists()


def test_correction_saves_step_ratings_for_training(client: Client, cast: Personas) -> None:
    gold = add_gold(cast, 1)
    first, second = (step.options.get(position=0).pk for step in gold.trace.steps.order_by("position")[:2])
    address = reverse("dashboard:correct_gold_trace", args=[cast.project.slug, gold.pk])
    client.force_login(cast.lead)
    data = {
        "accepted_first_errors": ["1"],
        f"rating_{first}": "1",
        f"why_{first}": "It counts.",
        f"why_{second}": "No.",
    }
    assert client.post(address, data).status_code == 302
    assert set(gold.ratings.values_list("option", "rating", "explanation")) == {
        (first, 1, "It counts."),
        (second, -1, "No."),  # the first error is negative by default
    }
    html = client.get(reverse("dashboard:gold_trace", args=[cast.project.slug, gold.pk])).content.decode()
    assert "It counts." in html
    correct_gold(gold=gold, accepted_first_errors=[0], by=None, now=NOW)  # as adjudication does
    assert list(gold.ratings.values_list("option", "rating")) == [(second, -1)]
    client.post(address, {"accepted_first_errors": ["none"]})
    assert not gold.ratings.exists()


@pytest.mark.parametrize(
    ("accepted", "rating", "why"),
    [("none", "-1", ""), ("1", "-1", ""), ("0", "1", ""), ("1", "", "Because."), ("1", "7", "")],
)
def test_correction_refuses_contradictions(
    accepted: str, rating: str, why: str, client: Client, cast: Personas
) -> None:
    gold = add_gold(cast, 1)
    first = gold.trace.steps.get(position=0).options.get(position=0).pk
    data = {"accepted_first_errors": [accepted], f"rating_{first}": rating, f"why_{first}": why}
    client.force_login(cast.lead)
    address = reverse("dashboard:correct_gold_trace", args=[cast.project.slug, gold.pk])
    assert client.post(address, data).status_code == 422
    assert not gold.ratings.exists()


@pytest.mark.parametrize("data", [{}, {"accepted_first_errors": ["99"]}, {"accepted_first_errors": ["x"]}])
def test_correction_refuses_invalid_first_errors(data: dict[str, list[str]], client: Client, cast: Personas) -> None:
    gold = add_gold(cast, 0)
    client.force_login(cast.lead)
    response = client.post(reverse("dashboard:correct_gold_trace", args=[cast.project.slug, gold.pk]), data)
    gold.refresh_from_db()
    assert (response.status_code, gold.accepted_first_errors) == (422, [0])


def test_retired_gold_leaves_the_queue_once(client: Client, cast: Personas) -> None:
    gold = add_gold(cast, 0)
    assert gold.trace.queue_entries.filter(is_open=True).exists()
    client.force_login(cast.lead)
    address = reverse("dashboard:retire_gold_trace", args=[cast.project.slug, gold.pk])
    for level in ("success", "warning"):
        (message,) = client.post(address, follow=True).context["messages"]
        assert message.level_tag == level
    gold.refresh_from_db()
    assert gold.retired_at is not None
    assert not gold.trace.queue_entries.filter(is_open=True).exists()
    page = client.get(reverse("dashboard:gold_trace", args=[cast.project.slug, gold.pk])).content.decode()
    assert address not in page


@pytest.mark.parametrize("name", ["gold_trace", "correct_gold_trace", "retire_gold_trace"])
def test_gold_of_another_project_is_not_found(name: str, client: Client, cast: Personas) -> None:
    trace = factories.make_trace(factories.make_project())
    gold = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    client.force_login(cast.owner)
    address = reverse(f"dashboard:{name}", args=[cast.project.slug, gold.pk])
    data = {"accepted_first_errors": ["none"]}
    assert (client.get(address) if name == "gold_trace" else client.post(address, data)).status_code == 404
    gold.refresh_from_db()
    assert (gold.accepted_first_errors, gold.retired_at) == ([0], None)


def test_page_costs_the_same_for_many_steps(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    costs = []
    for n in (1, 8):
        trace = factories.make_trace(cast.project, ["<script>alert(1)</script> $x^2$"] * n)
        gold = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
        with CaptureQueriesContext(connection) as queries:
            html = client.get(reverse("dashboard:gold_trace", args=[cast.project.slug, gold.pk])).content.decode()
        costs.append(len(queries))
        assert html.count("&lt;script&gt;alert(1)") == n
        assert "<script>alert" not in html
    assert costs[0] == costs[1] <= 10
