"""The page of one trace, and the actions on it."""

import datetime as dt

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from charts import number_format
from dashboard import rater_names
from events.models import Event
from labeling import assignments, gold_sets
from labeling.models import Gold, Provenance, Rater, RaterModelFit, Trace
from labeling.models.assignment import AssignmentState
from labeling.models.consensus import FitBasis
from labeling.models.gold import GoldUse
from labeling.quality import new_submissions, resolve
from labeling.quality.adjudication import decide_trace
from machines.models import JudgedTrace
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.quality import submitted_work
from tests.machines import judged_project
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    return personas.cast


def trace_url(cast: Personas, trace: Trace) -> str:
    return reverse("dashboard:trace", args=[cast.project.slug, trace.pk])


def test_page_shows_labels_and_hides_names_from_reviewers(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project, ["<script>alert(1)</script> $x^2$", ["Two.", "Or two."]])
    factories.make_entry(factories.make_lane(cast.project), trace, slots=2)
    assignment = factories.make_assignment(Rater.objects.get(project=cast.project), trace)
    pages, names = {}, {}
    for person in (cast.lead, cast.reviewer):
        client.force_login(person)
        response = client.get(trace_url(cast, trace))
        (reading,) = response.context["readings"]
        pages[person], names[person] = response.content.decode(), reading.name
        assert "<script>alert" not in pages[person]
        assert f'data-assignment="{assignment.pk}"' in pages[person]
    reclaim = reverse("dashboard:reclaim_from_annotator", args=[cast.project.slug, assignment.pk])
    assert reclaim in pages[cast.lead]
    assert reclaim not in pages[cast.reviewer]
    assert names == {cast.lead: str(cast.annotator), cast.reviewer: rater_names.get_pseudonym(assignment.rater)}


def test_page_costs_the_same_for_many(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    costs = []
    for n in (1, 8):
        trace = factories.make_trace(cast.project, ["One."] * n)
        for _ in range(n):
            factories.make_assignment(factories.make_rater(cast.project), trace)
        with CaptureQueriesContext(connection) as queries:
            client.get(trace_url(cast, trace))
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 18


def test_make_gold_saves_the_known_answer(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    client.force_login(cast.reviewer)
    address = reverse("dashboard:make_trace_gold", args=[cast.project.slug, trace.pk])
    data = {"use": "training", "accepted_first_errors": ["none", "2"], "explanation": "Either."}
    assert client.post(address, data).status_code == 302
    gold = Gold.objects.get(trace=trace)
    assert gold.use == "training"
    assert gold.accepted_first_errors == [None, 2]
    assert gold.made_by == cast.reviewer
    assert client.post(address, {"use": "training", "accepted_first_errors": ["7"]}).status_code == 422
    assert client.post(address, {"use": "training"}).status_code == 422


def test_make_gold_refuses_a_second_gold_for_the_same_use(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    Gold.objects.create(trace=trace, use="hidden", accepted_first_errors=[1], made_at=factories.NOW)
    client.force_login(cast.lead)
    address = reverse("dashboard:make_trace_gold", args=[cast.project.slug, trace.pk])
    response = client.post(address, {"use": "hidden", "accepted_first_errors": ["none"]})
    assert response.status_code == 422
    assert response.context["gold_form"].has_error("use", "already_gold")


def test_reclaim_returns_the_assignment_to_the_queue_once(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    assignment = factories.make_assignment(Rater.objects.get(project=cast.project), trace)
    client.force_login(cast.lead)
    address = reverse("dashboard:reclaim_from_annotator", args=[cast.project.slug, assignment.pk])
    for level in ("success", "warning"):
        (message,) = client.post(address, follow=True).context["messages"]
        assert message.level_tag == level
    assignment.refresh_from_db()
    assert assignment.state == AssignmentState.RELEASED
    assert trace.queue_entries.get().slots_left == 1
    assert Event.objects.filter(subject=f"assignment:{assignment.pk}", by=cast.lead.pk).exists()


def test_lease_end_is_in_the_time_zone_of_the_reader(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    client.cookies["zone"] = "Asia/Tokyo"
    trace = factories.make_trace(cast.project)
    until = dt.datetime(2026, 11, 18, 20, 30, tzinfo=dt.UTC)
    factories.make_assignment(Rater.objects.get(user=cast.annotator), trace, lease_ends_at=until)
    assert 'data-lease-end="19 Nov, 05:30"' in client.get(trace_url(cast, trace)).content.decode()


def test_page_shows_known_provenance_only(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    provenance = Provenance.objects.create(project=cast.project, digest="1a8edb19" * 8, segmenter="lines 2")
    trace = factories.make_trace(cast.project, provenance=provenance)
    html = client.get(trace_url(cast, trace)).content.decode()
    assert "<dd>lines 2</dd>" in html
    assert "1a8edb19" not in html
    assert 'data-fact="segmenter"' in html
    assert 'data-fact="model"' not in html


def test_withdraw_needs_a_reason(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    client.force_login(cast.engineer)
    address = reverse("dashboard:withdraw_trace", args=[cast.project.slug, trace.pk])
    assert client.post(address, {"reason": ""}).status_code == 422
    assert client.post(address, {"reason": "twice"}).status_code == 302
    trace.refresh_from_db()
    assert trace.withdrawn_reason == "twice"
    assert trace.withdrawn_at is not None


@pytest.mark.parametrize("name", ["dashboard:trace", "dashboard:make_trace_gold", "dashboard:withdraw_trace"])
def test_trace_of_another_project_is_not_found(name: str, client: Client, cast: Personas) -> None:
    elsewhere = factories.make_trace(factories.make_project())
    client.force_login(cast.owner)
    address = reverse(name, args=[cast.project.slug, elsewhere.pk])
    assert (client.get(address) if name == "dashboard:trace" else client.post(address)).status_code == 404


def test_reclaim_finds_no_assignment_of_another_project(client: Client, cast: Personas) -> None:
    rater = factories.make_rater(factories.make_project())
    assignment = factories.make_assignment(rater, factories.make_trace(rater.project))
    client.force_login(cast.owner)
    address = reverse("dashboard:reclaim_from_annotator", args=[cast.project.slug, assignment.pk])
    assert client.post(address).status_code == 404
    assignment.refresh_from_db()
    assert assignment.lease_ends_at == factories.NOW + dt.timedelta(minutes=30)


def test_steps_have_the_numbers_that_annotators_see(client: Client, cast: Personas) -> None:
    """Context steps have no number, neither beside the step nor in text."""
    client.force_login(cast.owner)
    trace = factories.make_trace(cast.project, ["Read me.", "Call.", "Result.", "Answer."])
    trace.steps.filter(position__in=[0, 2]).update(is_rateable=False)
    work = WorkPageClient(factories.make_assignment(factories.make_rater(cast.project), trace))
    work.send(work.write(1, 1), work.write(3, -1))
    assignments.submit(**work.place, now=factories.NOW, by=None)
    new_submissions.process_new_submissions(now=factories.NOW)
    gold_sets.make_served_gold(
        trace=trace, use=GoldUse.TRAINING, accepted_first_errors=[3], by=cast.lead, now=factories.NOW
    )
    decide_trace(trace_id=trace.pk, first_error=3, by=cast.lead, now=factories.NOW)
    response = client.get(trace_url(cast, trace))
    assert [step.number for step in response.context["steps"]] == [None, 1, None, 2]
    assert response.context["trace_state"].error == 2
    assert [reading.error for reading in response.context["readings"]] == [2]
    assert any("2" in event.detail for event in response.context["history"])
    assert "step 4" not in response.content.decode()
    gold = client.get(reverse("dashboard:gold", args=[cast.project.slug])).context["golds"]
    assert len(gold) == 1
    assert "2" in gold[0].accepted
    case = client.get(reverse("dashboard:adjudication_case", args=[cast.project.slug, trace.pk])).context["case"]
    assert [rater.error for rater in case["raters"]] == [2]


@pytest.mark.fault
def test_majority_is_on_every_page_of_a_trace(client: Client, cast: Personas) -> None:
    """Machines and raters who saw scores have no vote."""
    trace = factories.make_trace(cast.project)
    submissions = [
        submitted_work.submit_trace(factories.make_rater(cast.project), trace, ratings)
        for ratings in ([1, -1], [1, -1], [1, 1, 1])
    ]
    submitted_work.submit_trace(factories.make_machine_rater(cast.project), trace, [1, 1, 1])
    submitted_work.submit_trace(factories.make_rater(cast.project), trace, [1, 1, 1], is_assisted=True)
    resolve.resolve_due_traces(now=factories.NOW)
    client.force_login(cast.lead)
    page = client.get(trace_url(cast, trace))
    majority = page.context["majority"]
    assert all(text in majority for text in ("2 of 3", number_format.format_share(1 / 3)))
    for name, pk in (("submission", submissions[0].pk), ("adjudication_case", trace.pk)):
        html = client.get(reverse(f"dashboard:{name}", args=[cast.project.slug, pk])).content.decode()
        assert majority in html
    # Three raters settled it, so the consensus is the proposed gold answer.
    assert page.context["gold_form"]["accepted_first_errors"].value() == ["1"]
    submitted_work.submit_trace(factories.make_rater(cast.project), trace, [1, 1, 1])
    assert "2 of 4" in client.get(trace_url(cast, trace)).context["majority"]


def test_assisted_probability_is_shown_beside_the_consensus(client: Client, cast: Personas) -> None:
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
    ]
    submitted_work.submit_trace(factories.make_rater(cast.project), trace, [1, -1])
    submitted_work.submit_trace(factories.make_rater(cast.project), trace, [1, -1])
    submitted_work.submit_trace(factories.make_machine_rater(cast.project), trace, [1, 1, 1])
    resolve.resolve_due_traces(now=factories.NOW)
    consensus = trace.consensus.get()
    assert [consensus.fit, consensus.assisted_fit] == fits
    blind, assisted = consensus.posterior or [], consensus.assisted_posterior or []
    client.force_login(cast.lead)
    html = client.get(trace_url(cast, trace)).content.decode()
    assert f'data-assisted="{assisted[1]:.3f}" data-assisted-votes="3"' in html
    assert assisted[1] < blind[1]


def test_leads_see_the_progress_of_steps(client: Client, cast: Personas) -> None:
    judged_project.add_sums(cast.project, 1, wrong_at=2)
    trace = Trace.objects.latest("pk")
    judge = judged_project.make_rollout_rater(cast.project, options={"measures_progress": True})
    run = judged_project.start_run(judge)
    values = [[0, 4, 4], [1, 4, 4], [2, 2, 4], [3, 0, 4], [4, 0, 1]]
    JudgedTrace.objects.create(
        judge=judge, run=run, trace=trace, values=values, n_votes=16, n_parsed=16, judged_at=factories.NOW
    )
    pages = {}
    for person in (cast.lead, cast.reviewer):
        client.force_login(person)
        pages[person] = client.get(trace_url(cast, trace))
    (shown,) = pages[cast.lead].context["provers"]
    assert [row[:2] for row in shown.chart.table.rows] == [(1, 0.0), (2, -0.5), (3, -0.5), (4, 0.0)]
    assert f'data-prover="{judge.label}"' in pages[cast.lead].content.decode()
    assert "data-prover" not in pages[cast.reviewer].content.decode()
    client.force_login(cast.lead)
    table = client.get(trace_url(cast, trace), {"csv": f"progress-{judge.pk}"}).content.decode().splitlines()
    assert table[1].startswith("1,0.0,")
