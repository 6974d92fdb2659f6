"""Creating, correcting, retiring and promoting gold."""

import datetime as dt
from functools import partial

import pytest

from events.models import Event
from labeling import assignments, queue
from labeling.models import Assignment, Gold, Option, ProjectStats, Rater, Step
from labeling.models.gold import GoldUse
from labeling.quality import gold, new_submissions
from labeling.quality.gold import InvalidGold, correct_gold, enqueue_gold, make_gold, promote_to_gold, retire_gold
from labeling.quality.resolve import resolve_traces
from tests import factories
from tests.concurrency import run_at_once
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db


def test_make_gold_stores_the_answer_and_logs_it(now: dt.datetime) -> None:
    trace = factories.make_trace(factories.make_project(), ["One.", ["Two.", "Three."]])
    options = {option.pk: 1 for option in Option.objects.filter(step__trace=trace)}
    made = make_gold(
        trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[1, None], ratings=options, by=None, now=now
    )
    assert made.accepted_first_errors == [1, None]
    assert made.ratings.count() == 3
    assert Event.objects.get().subject == f"trace:{trace.pk}"


@pytest.mark.parametrize("accepted", [[], [2], [-1], [0]])
def test_make_gold_refuses_an_error_at_a_step_that_is_not_rateable(
    accepted: list[int | None], now: dt.datetime
) -> None:
    trace = factories.make_trace(factories.make_project(), ["Context.", "One."])
    Step.objects.filter(trace=trace, position=0).update(is_rateable=False)
    with pytest.raises(InvalidGold):
        make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=accepted, by=None, now=now)


def test_make_gold_refuses_a_rating_of_another_trace(now: dt.datetime) -> None:
    project = factories.make_project()
    trace, other = factories.make_trace(project), factories.make_trace(project)
    option = Option.objects.filter(step__trace=other).order_by("pk")[0]
    with pytest.raises(InvalidGold):
        make_gold(
            trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[None], ratings={option.pk: 1}, by=None, now=now
        )


def test_trace_is_gold_once_per_use(now: dt.datetime) -> None:
    trace = factories.make_trace(factories.make_project())
    make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=now)
    make_gold(trace=trace, use=GoldUse.TRAINING, accepted_first_errors=[0], by=None, now=now)
    with pytest.raises(InvalidGold) as caught:
        make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[1], by=None, now=now)
    assert caught.value.code == "already_gold"


@pytest.mark.usefixtures("real_connections")
def test_concurrent_make_gold_refuses_the_later_call(now: dt.datetime) -> None:
    trace = factories.make_trace(factories.make_project())
    make = partial(make_gold, trace=trace, use=GoldUse.HIDDEN, by=None, now=now)
    told = run_at_once(*(partial(make, accepted_first_errors=[place]) for place in (0, 1, None)))
    assert sum(isinstance(each, InvalidGold) for each in told) == 2, told
    assert Gold.objects.count() == Event.objects.filter(what="gold.made").count() == 1


def test_correct_gold_rescores_answers(now: dt.datetime) -> None:
    trace = factories.make_trace(factories.make_project())
    made = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=now)
    for rater, ratings in zip(submitted_work.make_raters(trace.project, 3), ([-1], [1, -1], [1, 1, 1]), strict=True):
        submitted_work.submit_trace(rater, trace, ratings, purpose="gold")
    assert sorted(made.answers.values_list("verdict", flat=True)) == ["missed", "missed", "right"]
    assert not ProjectStats.objects.filter(pk=trace.project_id, is_stale=True).exists()
    assert correct_gold(gold=made, accepted_first_errors=[1, None], by=None, now=now) == 3
    assert ProjectStats.objects.filter(pk=trace.project_id, is_stale=True).exists()
    assert sorted(made.answers.values_list("verdict", flat=True)) == ["blamed", "right", "right"]
    with pytest.raises(InvalidGold):
        correct_gold(gold=made, accepted_first_errors=[9], by=None, now=now)


@pytest.mark.usefixtures("real_connections")
def test_concurrent_corrections_and_submits_leave_consistent_verdicts(now: dt.datetime) -> None:
    """Two corrections run while others submit: in the end, every verdict matches the accepted answer."""
    trace = factories.make_trace(factories.make_project())
    made = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=now)
    everybody = submitted_work.make_raters(trace.project, 3)
    seen = Gold.objects.select_related("trace").get(pk=made.pk)

    def correct(gold: Gold, position: int) -> object:
        return correct_gold(gold=gold, accepted_first_errors=[position], by=None, now=now)

    told = run_at_once(
        partial(correct, made, 1),
        *(partial(submitted_work.submit_trace, rater, trace, [1, 1, -1], purpose="gold") for rater in everybody),
        partial(correct, seen, 2),
    )
    assert not [each for each in told if isinstance(each, Exception)]
    new_submissions.process_new_submissions(now=now)  # those that met a locked trace have stayed due
    first, last = Event.objects.filter(what="gold.corrected").order_by("pk")
    assert last.detail["before"] == first.detail["after"]  # corrections are serialized
    made.refresh_from_db()
    assert last.detail["after"] == made.accepted_first_errors
    right = "right" if made.accepted_first_errors == [2] else "missed"
    assert list(made.answers.values_list("verdict", flat=True)) == [right] * 3


@pytest.mark.usefixtures("real_connections")
def test_retire_gold_while_it_is_answered(now: dt.datetime) -> None:
    """Open assignments are scored after a retirement or correction, and returned ones are not served again."""
    project = factories.make_project(gold_share=1)
    trace = factories.make_trace(project)
    made = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=now)
    enqueue_gold(project_id=project.pk, use=GoldUse.HIDDEN, trace_ids=[trace.pk], now=now)
    factories.make_entry(factories.make_lane(project), factories.make_trace(project))
    everybody = submitted_work.make_raters(project, 4)
    claims = [queue.claim_trace(rater_id=each.pk, now=now, opened=True, chance=0.0) for each in everybody]
    told = run_at_once(
        *(partial(answer, claim, each) for claim, each in zip(claims[:2], everybody, strict=False)),
        partial(retire_gold, gold=made, by=None, now=now),
        partial(correct_gold, gold=Gold.objects.get(), accepted_first_errors=[1], by=None, now=now),
        *(
            partial(queue.release_assignment, assignment_id=each.assignment_id, now=now, reason="no", by=None)
            for each in claims[2:]
        ),
    )
    assert not [each for each in told if isinstance(each, Exception)], told
    new_submissions.process_new_submissions(now=now)
    assert list(made.answers.values_list("verdict", flat=True)) == ["missed"] * 2
    left = queue.lane_depths(project_id=project.pk)
    assert [(each.arm, each.n_open) for each in left if each.arm == "gold"] == [("gold", 0)]


def answer(claim: queue.Claim, rater: Rater) -> object:
    client = WorkPageClient(Assignment.objects.get(pk=claim.assignment_id))
    client.rate([1, 1, 1])
    return assignments.submit(**client.place, now=factories.NOW, by=rater.user)


def test_retired_gold_leaves_its_lane(now: dt.datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = factories.make_trace(factories.make_project())
    made = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=now)
    queue.enqueue(project_id=trace.project_id, arm="gold", trace_ids=[trace.pk], slots=50, now=now)
    rater = factories.make_rater(trace.project)
    submitted_work.submit_trace(rater, trace, [-1], purpose="gold")
    asked = factories.make_trace(trace.project)  # screening gold never becomes overexposed
    make_gold(trace=asked, use=GoldUse.SCREENING, accepted_first_errors=[0], by=None, now=now)
    submitted_work.submit_trace(rater, asked, [-1], purpose="screening")
    assert gold.retire_overexposed_gold(project_id=trace.project_id, now=now) == 0
    monkeypatch.setattr(gold, "MAX_GOLD_EXPOSURES", 2)
    held = factories.make_assignment(factories.make_rater(trace.project), trace, purpose="gold", opened_at=None)
    assert gold.retire_overexposed_gold(project_id=trace.project_id, now=now) == 0
    Assignment.objects.filter(pk=held.pk).update(opened_at=now)  # seen, and answered or not
    assert gold.retire_overexposed_gold(project_id=trace.project_id, now=now) == 1
    assert trace.queue_entries.get().slots_left == 0
    assert not retire_gold(gold=made, by=None, now=now)


def test_consensus_of_three_can_become_gold(now: dt.datetime) -> None:
    trace = factories.make_trace(factories.make_project(overlap=2))
    for number in range(3):
        submitted_work.submit_trace(factories.make_rater(trace.project), trace, [1, -1])
        resolve_traces(project_id=trace.project_id, trace_ids=[trace.pk], now=now)
        if number == 1:
            with pytest.raises(InvalidGold) as caught:
                promote_to_gold(trace=trace, use=GoldUse.HIDDEN, by=None, now=now)
            assert caught.value.code == "few_votes"
    made = promote_to_gold(trace=trace, use=GoldUse.HIDDEN, by=None, now=now, explanation="Look at the sign.")
    assert (made.accepted_first_errors, made.explanation) == ([1], "Look at the sign.")
