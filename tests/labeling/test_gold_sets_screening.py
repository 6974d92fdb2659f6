"""A screening set is drawn from known answers, adjusted by a lead, and replaced."""

import datetime as dt
from collections import Counter

import pytest

from accounts.models import User
from events.models import Event
from labeling import gold_sets, raters
from labeling.gold_sets import AGREED, DECIDED
from labeling.models import Gold, GoldRating, Option, Project, QueueEntry, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.quality import project_stats
from labeling.quality.adjudication import decide_trace
from labeling.quality.gold import MAX_GOLD_EXPOSURES, InvalidGold, retire_gold
from labeling.quality.resolve import resolve_traces
from tests import factories
from tests.labeling import onboarding_project
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
QUARTERS = {"none": 1, "early": 1, "middle": 1, "late": 1}


@pytest.fixture
def lead() -> User:
    return factories.make_user("lead")


def known(project: Project, use: GoldUse, *accepted: int | None) -> Trace:
    trace = factories.make_trace(project)
    gold_sets.make_served_gold(trace=trace, use=use, accepted_first_errors=accepted, by=None, now=NOW)
    return trace


def hidden(project: Project, n: int) -> list[Trace]:
    """Make equally many hidden gold traces of each stratum."""
    return [known(project, GoldUse.HIDDEN, place) for _ in range(n) for place in (None, 0, 1, 2)]


def chosen(proposal: gold_sets.ScreeningProposal) -> list[int]:
    return [each.known.trace for each in proposal.chosen]


@pytest.mark.fault
def test_proposal_is_stratified_and_reproducible() -> None:
    project = factories.make_project()
    hidden(project, 3)
    first = gold_sets.propose_screening_set(project=project, wanted=dict.fromkeys(QUARTERS, 2))
    assert Counter(each.known.place for each in first.chosen) == dict.fromkeys(QUARTERS, 2)
    assert (first.available, first.mix.n_sound, first.mix.passes_without_reading) == (
        dict.fromkeys(QUARTERS, 3),
        2,
        False,
    )
    assert gold_sets.propose_screening_set(project=project, wanted=first.wanted) == first
    others = [gold_sets.propose_screening_set(project=project, wanted=first.wanted, round=n) for n in range(2, 6)]
    assert any(set(chosen(each)) != set(chosen(first)) for each in others)
    assert not Gold.objects.filter(use=GoldUse.SCREENING).exists()  # exactly what was shown


@pytest.mark.fault
def test_proposal_leaves_out_unsuitable_traces(lead: User) -> None:
    """Training gold, canaries, retired gold, held-out problems, and a consensus of two."""
    project = factories.make_project(overlap=2)
    for use in (GoldUse.TRAINING, GoldUse.CANARY):
        known(project, use, 0)
    retire_gold(gold=Gold.objects.get(trace=known(project, GoldUse.HIDDEN, 0)), by=lead, now=NOW)
    settle(factories.make_trace(project), [[-1]] * 2)
    reserve = factories.make_trace(project, problem=factories.make_problem(project, is_reserve=True))
    settle(reserve, [[-1]] * 3)
    agreed, decided = settle(factories.make_trace(project), [[-1], [-1], [1, -1]]), factories.make_trace(project)
    settle(decided, [[-1], [1, -1]])
    decide_trace(trace_id=decided.pk, first_error=2, by=lead, now=NOW)
    found = gold_sets.propose_screening_set(project=project, wanted=dict.fromkeys(QUARTERS, 9))
    assert {each.known.trace: (each.known.tier, each.known.place) for each in found.chosen} == {
        agreed.pk: (AGREED, "early"),
        decided.pk: (DECIDED, "late"),
    }
    assert {(each.n_for, each.n_votes) for each in found.chosen if each.known.tier == AGREED} == {(2, 3)}


def settle(trace: Trace, readings: list[list[int]]) -> Trace:
    for ratings in readings:
        submitted_work.submit_trace(factories.make_rater(trace.project), trace, ratings)
        resolve_traces(project_id=trace.project_id, trace_ids=[trace.pk], now=NOW)
    return trace


@pytest.mark.fault
def test_replaced_set_has_exactly_the_chosen_traces(lead: User) -> None:
    project = factories.make_project(overlap=2)
    stays, leaves = (known(project, GoldUse.SCREENING, place) for place in (0, 1))
    moved = known(project, GoldUse.HIDDEN, None)
    option = Option.objects.filter(step__trace=moved)[0]
    GoldRating.objects.create(gold=Gold.objects.get(trace=moved), option=option, rating=1, explanation="It holds.")
    agreed = settle(factories.make_trace(project), [[1, 1, -1]] * 3)
    wanted = [agreed.pk, stays.pk, moved.pk]
    assert gold_sets.replace_screening_set(project=project, trace_ids=wanted, by=lead, now=NOW) == (3, 2, 1)
    in_use = Gold.objects.filter(retired_at=None).order_by("trace_id").values_list("trace_id", "use")
    assert set(in_use) == {(each, "screening") for each in wanted}
    open_ones = (
        QueueEntry.objects.filter(is_open=True).order_by("-key", "-trace_id").values_list("trace_id", "lane__arm")
    )
    assert list(open_ones) == [(each, "screening") for each in wanted]  # in this order, and no longer hidden
    assert GoldRating.objects.get(gold__use="screening").explanation == "It holds."
    detail = Event.objects.get(what="screening.set_taken").detail
    assert detail == {"traces": 3, "new": 2, "left": 1, "late": 1, "early": 1, "none": 1}
    assert gold_sets.replace_screening_set(project=project, trace_ids=wanted, by=lead, now=NOW) == (3, 0, 0)
    newcomer = raters.ensure_member(project=project, user=factories.make_user(), now=NOW)
    assert gold_sets.load_set_progress(rater=newcomer, purpose=AssignmentPurpose.SCREENING).total == 3
    assert Gold.objects.get(trace=leaves).retired_at == NOW
    told = project_stats.build_stats_content(project_id=project.pk, now=NOW)["settled"]
    assert (told["traces"], told["of"]) == (1, 2)  # a settled trace counts as settled even if it is gold


def test_unavailable_trace_cannot_be_in_a_set(lead: User) -> None:
    project = factories.make_project()
    there, gone = known(project, GoldUse.HIDDEN, 0), known(project, GoldUse.HIDDEN, 1)
    retire_gold(gold=Gold.objects.get(trace=gone), by=lead, now=NOW)
    for wanted in ([], [there.pk, gone.pk], [known(factories.make_project(), GoldUse.HIDDEN, 0).pk]):
        with pytest.raises(InvalidGold):
            gold_sets.replace_screening_set(project=project, trace_ids=wanted, by=lead, now=NOW)
    assert not Gold.objects.filter(trace__project=project, use=GoldUse.SCREENING).exists()


@pytest.mark.fault
def test_constant_answers_fail_a_stratified_set(lead: User, now: dt.datetime) -> None:
    """The raters go through the claims and submits of the onboarding."""
    natural, drawn = (
        onboarding_project.make_project(screening_pass_share=0.75, screening_attempts=1) for _ in range(2)
    )
    for _ in range(3):
        known(natural, GoldUse.SCREENING, None)
    known(natural, GoldUse.SCREENING, 1)
    hidden(drawn, 1)
    proposal = gold_sets.propose_screening_set(project=drawn, wanted=QUARTERS)
    gold_sets.replace_screening_set(project=drawn, trace_ids=chosen(proposal), by=lead, now=now)
    stages = []
    for project in (natural, drawn):
        rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
        for _ in range(4):
            onboarding_project.rate_next(rater, now, first_error=-1)
        stages.append(onboarding_project.current_stage(rater))
    assert stages == ["working", "failed"]


def test_retired_gold_is_served_when_it_is_gold_again(lead: User) -> None:
    project = factories.make_project()
    trace = known(project, GoldUse.HIDDEN, 0)
    retire_gold(gold=Gold.objects.get(), by=lead, now=NOW)
    assert not QueueEntry.objects.filter(is_open=True).exists()
    gold_sets.make_served_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[1], by=lead, now=NOW)
    assert QueueEntry.objects.get(is_open=True).slots_left == MAX_GOLD_EXPOSURES
