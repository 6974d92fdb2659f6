"""Traces: found by what is known of them, shown with why they are where they are, and changed by verbs alone."""

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from dashboard import trace_status
from events.models import Event
from labeling import assignments, onboarding, queue
from labeling.models import Gold, Provenance, Rater, RaterModelFit, Settlement, Trace
from labeling.models.assignment import AssignmentState
from labeling.models.gold import GoldUse
from labeling.models.rater_model import FitBasis
from labeling.quality import background_refresh
from labeling.quality.adjudication import decide_trace
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient as JudgingClient
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Personas:
    return make_personas()


def found(client: Client, cast: Personas, asked: str = "") -> list[int]:
    response = client.get(reverse("dashboard:traces", args=[cast.project.slug]) + asked)
    return [row.trace.pk for row in response.context["hits"].rows]


def settle(trace: Trace, state: str) -> None:
    Settlement.objects.create(
        trace=trace, project=trace.project, state=state, n_readings=3, changed_at=factories.NOW, is_due=False
    )


def test_find_filters_by_everything_it_offers(client: Client, cast: Personas) -> None:
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
    assert {asked: found(client, cast, asked) for asked in expected} == expected


@pytest.mark.parametrize("n", [3, 60])
def test_find_costs_the_same_for_many(
    n: int, client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    lane = factories.make_lane(cast.project)
    for _ in range(n):
        trace = factories.make_trace(cast.project, ["One."])
        factories.make_entry(lane, trace)
        settle(trace, "reading")
    client.force_login(cast.lead)
    with django_assert_num_queries(5):
        assert len(found(client, cast)) == min(n, 50)


def test_one_says_who_read_it_and_why_it_is_here(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project, ["<script>alert(1)</script> $x^2$", ["Two.", "Or two."]])
    factories.make_entry(factories.make_lane(cast.project), trace, slots=2)
    factories.make_assignment(Rater.objects.get(project=cast.project), trace)
    address = reverse("dashboard:trace", args=[cast.project.slug, trace.pk])
    pages = {}
    for person in (cast.lead, cast.reviewer):
        client.force_login(person)
        pages[person] = client.get(address).content.decode()
        assert "<script>alert" not in pages[person]
        assert "Waits for 2 readings" in pages[person]
    assert ("Take back" in pages[cast.lead], "Take back" in pages[cast.reviewer]) == (True, False)
    assert f">{cast.annotator}</b>" in pages[cast.lead].replace("</a>", "")
    assert str(cast.annotator) not in pages[cast.reviewer]


@pytest.mark.parametrize(("slots", "said"), [(1, "waits for 1 reading."), (2, "waits for 2 readings.")])
def test_why_a_trace_waits_counts_in_words(slots: int, said: str, cast: Personas) -> None:
    trace = factories.make_trace(cast.project, ["One."])
    entry = factories.make_entry(factories.make_lane(cast.project, "reserve"), trace, slots=slots)
    assert trace_status.explain_trace_status(trace, None, [entry]).endswith(said)


@pytest.mark.parametrize("n", [1, 8])
def test_one_costs_the_same_for_many(
    n: int, client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    trace = factories.make_trace(cast.project, ["One."] * n)
    for _ in range(n):
        factories.make_assignment(factories.make_rater(cast.project), trace)
    client.force_login(cast.lead)
    with django_assert_num_queries(16):
        client.get(reverse("dashboard:trace", args=[cast.project.slug, trace.pk]))


def test_make_gold_keeps_what_is_known(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    client.force_login(cast.reviewer)
    address = reverse("dashboard:make_trace_gold", args=[cast.project.slug, trace.pk])
    told = {"use": "training", "accepted_first_errors": ["none", "2"], "explanation": "Either."}
    assert client.post(address, told).status_code == 302
    gold = Gold.objects.get(trace=trace)
    assert (gold.use, gold.accepted_first_errors, gold.made_by) == ("training", [None, 2], cast.reviewer)
    assert client.post(address, {"use": "training", "accepted_first_errors": ["7"]}).status_code == 422
    assert client.post(address, {"use": "training"}).status_code == 422


def test_make_gold_says_that_it_is_gold_already(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    Gold.objects.create(trace=trace, use="hidden", accepted_first_errors=[1], made_at=factories.NOW)
    client.force_login(cast.lead)
    address = reverse("dashboard:make_trace_gold", args=[cast.project.slug, trace.pk])
    response = client.post(address, {"use": "hidden", "accepted_first_errors": ["none"]})
    assert response.status_code == 422
    assert "already gold" in response.content.decode()


def test_take_back_gives_the_slot_to_the_next(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    assignment = factories.make_assignment(Rater.objects.get(project=cast.project), trace)
    client.force_login(cast.lead)
    address = reverse("dashboard:reclaim_from_annotator", args=[cast.project.slug, assignment.pk])
    for said in ("went back to the queue", "nobody’s hands"):
        assert said in client.post(address, follow=True).content.decode()
    assignment.refresh_from_db()
    assert assignment.state == AssignmentState.RELEASED
    assert trace.queue_entries.get().slots_left == 1
    assert Event.objects.filter(subject=f"assignment:{assignment.pk}", by=cast.lead.pk).exists()


def test_one_says_until_when_it_is_kept_by_the_clock_of_who_reads(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    client.cookies["zone"] = "Asia/Tokyo"
    trace = factories.make_trace(cast.project)
    until = dt.datetime(2026, 11, 18, 20, 30, tzinfo=dt.UTC)
    factories.make_assignment(Rater.objects.get(user=cast.annotator), trace, lease_ends_at=until)
    told = client.get(reverse("dashboard:trace", args=[cast.project.slug, trace.pk])).content.decode()
    assert "theirs until 19 Nov, 05:30<" in told


def test_one_says_how_it_was_made_where_that_is_known(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    made = Provenance.objects.create(project=cast.project, digest="1a8edb19" * 8, segmenter="lines 2")
    trace = factories.make_trace(cast.project, provenance=made)
    told = client.get(reverse("dashboard:trace", args=[cast.project.slug, trace.pk])).content.decode()
    assert "<dd>lines 2</dd>" in told
    assert "1a8edb19" not in told
    assert "Made by" not in told


def test_withdraw_needs_a_reason(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    client.force_login(cast.engineer)
    address = reverse("dashboard:withdraw_trace", args=[cast.project.slug, trace.pk])
    assert client.post(address, {"reason": ""}).status_code == 422
    assert client.post(address, {"reason": "twice"}).status_code == 302
    trace.refresh_from_db()
    assert (trace.withdrawn_reason, trace.withdrawn_at is not None) == ("twice", True)


@pytest.mark.parametrize("name", ["dashboard:trace", "dashboard:make_trace_gold", "dashboard:withdraw_trace"])
def test_pages_find_no_trace_of_another_project(name: str, client: Client, cast: Personas) -> None:
    elsewhere = factories.make_trace(factories.make_project())
    client.force_login(cast.owner)
    address = reverse(name, args=[cast.project.slug, elsewhere.pk])
    assert (client.get(address) if name == "dashboard:trace" else client.post(address)).status_code == 404


def test_take_back_finds_nothing_of_another_project(client: Client, cast: Personas) -> None:
    rater = factories.make_rater(factories.make_project())
    assignment = factories.make_assignment(rater, factories.make_trace(rater.project))
    client.force_login(cast.owner)
    address = reverse("dashboard:reclaim_from_annotator", args=[cast.project.slug, assignment.pk])
    assert client.post(address).status_code == 404
    assignment.refresh_from_db()
    assert assignment.lease_ends_at == factories.NOW + dt.timedelta(minutes=30)


def test_steps_are_numbered_as_their_raters_see_them(client: Client, cast: Personas) -> None:
    """What is only read has no number, neither beside the step nor where somebody speaks of one."""
    client.force_login(cast.owner)
    trace = factories.make_trace(cast.project, ["Read me.", "Call.", "Result.", "Answer."])
    trace.steps.filter(position__in=[0, 2]).update(is_rateable=False)
    assignment = factories.make_assignment(factories.make_rater(cast.project), trace)
    judging_client = JudgingClient(assignment)
    judging_client.send(judging_client.write(1, 1), judging_client.write(3, -1))
    assignments.submit(**judging_client.place, now=factories.NOW, by=None)
    onboarding.make_served_gold(
        trace=trace, use=GoldUse.TRAINING, accepted_first_errors=[3], by=cast.lead, now=factories.NOW
    )
    decide_trace(trace_id=trace.pk, first_error=3, by=cast.lead, now=factories.NOW)
    address = [cast.project.slug, trace.pk]
    page = client.get(reverse("dashboard:trace", args=address))
    assert [rung.number for rung in page.context["rungs"]] == [None, 1, None, 2]
    text = page.content.decode()
    assert "first error at step 2" in text
    assert "First error: step 2" in text  # in the history
    assert "step 4" not in text
    gold = client.get(reverse("dashboard:gold", args=address[:1])).context["golds"].rows
    assert [row.accepted for row in gold] == ["step 2"]
    assert "error 2</td>" in client.get(reverse("dashboard:adjudication_case", args=address)).content.decode()


def test_majority_is_told_with_its_margin_wherever_consensus_is(client: Client, cast: Personas) -> None:
    """On the trace, on a review, and to whoever decides; machines and whoever saw scores have no part in it."""
    trace = factories.make_trace(cast.project)
    read = [
        submitted_work.submit_trace(factories.make_rater(cast.project), trace, said)
        for said in ([1, -1], [1, -1], [1, 1, 1])
    ]
    submitted_work.submit_trace(factories.make_machine_rater(cast.project), trace, [1, 1, 1])
    submitted_work.submit_trace(factories.make_rater(cast.project), trace, [1, 1, 1], is_assisted=True)
    background_refresh.resolve_due_traces(now=factories.NOW)
    client.force_login(cast.lead)
    addresses = [
        reverse("dashboard:trace", args=[cast.project.slug, trace.pk]),
        reverse("dashboard:submission", args=[cast.project.slug, read[0].pk]),
        reverse("dashboard:adjudication_case", args=[cast.project.slug, trace.pk]),
    ]
    for address in addresses:
        told = client.get(address).content.decode()
        assert "Majority: first error at step 2, by 2 of 3 readings, margin .33." in told
    form = client.get(addresses[0]).context["gold_form"]
    assert form["accepted_first_errors"].value() == ["1"]  # three raters: it is there to be promoted
    submitted_work.submit_trace(factories.make_rater(cast.project), trace, [1, 1, 1])
    assert "No majority: no place is named by more than 2 of 4 readings" in client.get(addresses[0]).content.decode()


def test_trace_says_what_machines_make_of_its_place(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    fits = [
        RaterModelFit.objects.create(
            project=cast.project,
            basis=basis,
            number=1,
            made_at=factories.NOW,
            n_traces=1,
            n_readings=1,
            n_gold=100,
            rates={"others": [0.02, 0.9, 0.5]},
            hazards={"domains": {}, "all": [0.2] * 25},
        )
        for basis in FitBasis
    ]  # fmt: skip  (one line a fact)
    submitted_work.submit_trace(factories.make_rater(cast.project), trace, [1, -1])
    submitted_work.submit_trace(factories.make_rater(cast.project), trace, [1, -1])
    submitted_work.submit_trace(factories.make_machine_rater(cast.project), trace, [1, 1, 1])
    background_refresh.resolve_due_traces(now=factories.NOW)
    row = trace.consensus.get()
    assert (row.fit, row.assisted_fit) == tuple(fits)
    alone, assisted = row.posterior or [], row.assisted_posterior or []
    client.force_login(cast.lead)
    told = client.get(reverse("dashboard:trace", args=[cast.project.slug, trace.pk])).content.decode()
    assert f"3 votes in all: {assisted[1]:.3f}; it settles nothing." in told
    assert assisted[1] < alone[1]
