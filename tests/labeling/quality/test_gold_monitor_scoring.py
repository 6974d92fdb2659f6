"""Scoring of gold answers."""

import datetime as dt

import pytest

from labeling.models import GoldAnswer, Rater, Trace
from labeling.models.gold import GoldUse
from labeling.quality import gold_monitor, submitted_reports
from labeling.quality.gold import make_gold
from labeling.quality.gold_monitor import load_gold_accuracy
from labeling.quality.submitted_reports import RevisionReport
from tests import factories
from tests.labeling.quality import submitted_work

RIGHT, MISSED, BLAMED, GAVE_UP = "right", "missed", "blamed", "gave_up"


@pytest.mark.parametrize(
    ("accepted", "said", "verdict"),
    [
        ([2], 2, RIGHT),
        ([2, 3], 3, RIGHT),
        ([None], None, RIGHT),
        ([1, None], None, RIGHT),
        ([2], None, MISSED),
        ([2], 3, MISSED),
        ([2, 5], 4, MISSED),
        ([2], 1, BLAMED),
        ([None], 0, BLAMED),
        ([2, None], 3, BLAMED),
    ],
)
def test_verdict_distinguishes_missed_errors_and_false_alarms(
    accepted: list[int | None], said: int | None, verdict: str
) -> None:
    assert gold_monitor.judge_first_error(accepted=accepted, first_error=said) == verdict


def test_giving_up_is_never_right() -> None:
    assert gold_monitor.judge_first_error(accepted=[None], first_error=None, is_censored=True) == GAVE_UP


@pytest.fixture
def gold_trace() -> Trace:
    trace = factories.make_trace(factories.make_project())
    make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[1], by=None, now=factories.NOW)
    return trace


@pytest.fixture
def rater(gold_trace: Trace) -> Rater:
    return factories.make_rater(gold_trace.project)


@pytest.mark.django_db
def test_gold_answer_is_scored_with_the_submit(gold_trace: Trace, rater: Rater, now: dt.datetime) -> None:
    submitted_work.submit_trace(rater, gold_trace, [1, -1], purpose="gold")
    answer = GoldAnswer.objects.get()
    assert (answer.verdict, answer.first_error, answer.use, answer.answered_at) == (RIGHT, 1, "hidden", now)
    assert (answer.rater, answer.project) == (rater, gold_trace.project)


@pytest.mark.django_db
def test_only_the_first_revision_is_scored(gold_trace: Trace, rater: Rater, now: dt.datetime) -> None:
    assignment = submitted_work.submit_trace(rater, gold_trace, [1, 1, -1], purpose="gold")
    submitted_work.correct_step(assignment, 1, -1, now=now + dt.timedelta(days=1))
    assert [
        report.position for report in submitted_reports.load_revision_reports([(assignment.pk, 1), (assignment.pk, 2)])
    ] == [2, 1]
    answer = GoldAnswer.objects.get()
    assert (answer.verdict, answer.first_error, answer.answered_at) == (MISSED, 2, now)


@pytest.mark.django_db
def test_work_is_not_scored(gold_trace: Trace, rater: Rater) -> None:
    submitted_work.submit_trace(rater, gold_trace, [1, -1])
    assert not GoldAnswer.objects.exists()


@pytest.mark.django_db
def test_screening_is_scored_by_attempt(gold_trace: Trace, rater: Rater, now: dt.datetime) -> None:
    make_gold(trace=gold_trace, use=GoldUse.SCREENING, accepted_first_errors=[None], by=None, now=now)
    submitted_work.submit_trace(rater, gold_trace, [1, 1, 1], purpose="screening")
    submitted_work.submit_trace(rater, gold_trace, [-1], purpose="screening", attempt=2)
    assert load_gold_accuracy(rater_id=rater.pk).n == 0
    assert load_gold_accuracy(rater_id=rater.pk, use=GoldUse.SCREENING).n == 2
    second = load_gold_accuracy(rater_id=rater.pk, use=GoldUse.SCREENING, attempt=2)
    assert (second.n, second.right, second.blamed, second.share) == (1, 0, 1, 0.0)


@pytest.mark.django_db
def test_giving_up_is_scored_as_such(gold_trace: Trace, rater: Rater) -> None:
    assignment = submitted_work.give_up(rater, gold_trace, [1], purpose="gold")
    assert submitted_reports.load_revision_reports([(assignment.pk, 1)]) == [
        RevisionReport(assignment.pk, 1, gold_trace.pk, rater.pk, None, 1, is_censored=True)
    ]
    assert GoldAnswer.objects.get().verdict == GAVE_UP


@pytest.mark.django_db
def test_giving_up_after_the_error_is_scored_like_any_answer(gold_trace: Trace, rater: Rater) -> None:
    submitted_work.give_up(rater, gold_trace, [1, -1], purpose="gold")
    assert GoldAnswer.objects.get().verdict == RIGHT


def test_accuracy_without_answers_is_undefined() -> None:
    nothing = gold_monitor.GoldAccuracy(n=0, right=0, missed=0, blamed=0, gave_up=0)
    assert (nothing.share, nothing.interval.low, nothing.interval.high) == (None, 0.0, 1.0)
