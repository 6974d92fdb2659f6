"""Signals of raters: values, intervals and descriptions."""

import datetime as dt
from collections.abc import Sequence

import pytest

from labeling.models import FirstErrorReport, Rater, StepReview, Trace
from labeling.models.gold import GoldUse
from labeling.quality import error_breakdowns, project_stats, resolve, signals
from labeling.quality.gold import make_gold
from stats import intervals
from stats.estimates import Reason
from tests import factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.mark.fault
def test_flags_for_hasty_raters() -> None:
    """Each signal has a value, an interval, the usual value and a description."""
    project = factories.make_project()
    hasty, careful = submitted_work.make_raters(project, 2)
    for number in range(20):
        trace = factories.make_trace(project)
        submitted_work.submit_trace(hasty, trace, [1, 1, 1])
        submitted_work.submit_trace(careful, trace, [1, -1] if number % 2 else [1, 1, 1])
    StepReview.objects.filter(assignment__rater=hasty).update(active_ms=80)
    StepReview.objects.filter(assignment__rater=careful).update(active_ms=2000)
    resolve.resolve_due_traces(now=NOW)
    found = signals.compute_signals(project_id=project.pk)
    assert signals.list_raised_kinds(found[hasty.pk]) == ["fast", "unread", "alike", "no_errors"]
    assert signals.list_raised_kinds(found[careful.pk]) == []
    sign = found[hasty.pk]["no_errors"]
    assert (sign.value, sign.low, sign.n, sign.usual) == (0.0, 0.0, 20, 0.5)
    told = project_stats.build_stats_content(project_id=project.pk, now=NOW)["raters"][str(hasty.pk)]
    assert told["flags"] == ["fast", "unread", "alike", "no_errors"]
    shown = signals.describe_signals(told)
    assert [each.is_raised for each in shown[:4]] == [True, True, True, True]
    assert all(each.name and each.what and each.low <= each.value <= each.high for each in shown)


@pytest.mark.fault
def test_signal_that_most_raters_have_is_not_raised() -> None:
    project = factories.make_project()
    people = submitted_work.make_raters(project, 3)
    for _ in range(12):
        trace = factories.make_trace(project)
        for rater in people:
            submitted_work.submit_trace(rater, trace, [1, 1, 1])
    resolve.resolve_due_traces(now=NOW)
    for n_fast, raised in ((1, 1), (2, 0), (3, 0)):
        fast = [rater.pk for rater in people[:n_fast]]
        StepReview.objects.update(active_ms=2000)
        StepReview.objects.filter(assignment__rater__in=fast).update(active_ms=80)
        found = signals.compute_signals(project_id=project.pk)
        assert sum(by_kind["fast"].is_raised for by_kind in found.values()) == raised


@pytest.mark.fault
def test_flag_for_declining_accuracy() -> None:
    project = factories.make_project()
    rater = factories.make_rater(project)
    for n in range(24):
        trace = factories.make_trace(project)
        make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
        at = NOW + dt.timedelta(minutes=5.5 * n)  # one sitting of two hours
        submitted_work.submit_trace(rater, trace, [-1] if n < 12 else [1, 1, 1], purpose="gold", now=at)
    assert signals.compute_signals(project_id=project.pk) == {}  # no work submitted
    submitted_work.submit_trace(rater, factories.make_trace(project), [1, 1, 1], now=NOW)
    resolve.resolve_due_traces(now=NOW)
    sign = signals.compute_signals(project_id=project.pk)[rater.pk]["falling"]
    assert (sign.n, sign.is_raised) == (24, True)
    assert sign.value == pytest.approx(-1, abs=0.1)


def test_bias_has_misses_by_step_and_false_alarms_by_length() -> None:
    project = factories.make_project()
    raters = submitted_work.make_raters(project, 2)
    for accepted, said in (([2], ([1, 1, -1], [1, 1, 1])), ([None], ([1, 1, 1], [-1])), ([0, None], ([-1], [-1]))):
        meet(raters, factories.make_trace(project), accepted, said)
    found = project_stats.build_stats_content(project_id=project.pk, now=NOW)["bias"]
    assert [(row["step"], row["n"], row["value"]) for row in found["missed"]] == [(2, 2, 0.5)]
    assert [(row["from"], row["to"], row["n"], row["value"]) for row in found["blamed"]] == [(1, 4, 2, 0.5)]
    row = found["missed"][0]
    assert (row["n_problems"], row["low"], row["interval_reason"]) == (1, None, Reason.FEW_PROBLEMS)


def meet(raters: list[Rater], trace: Trace, accepted: Sequence[int | None], said: Sequence[list[int]]) -> None:
    make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=accepted, by=None, now=NOW)
    for rater, ratings in zip(raters, said, strict=True):
        submitted_work.submit_trace(rater, trace, ratings, purpose="gold")


@pytest.mark.fault
def test_bias_intervals_cluster_by_problem() -> None:
    """Six problems of two traces each, two of them missed by both raters: by answers the interval would be narrower."""
    project = factories.make_project()
    raters = submitted_work.make_raters(project, 2)
    for number in range(6):
        problem = factories.make_problem(project)
        for _ in range(2):
            said = [[1, 1, 1]] * 2 if number < 2 else [[-1]] * 2
            meet(raters, factories.make_trace(project, problem=problem), [0], said)
    (row,) = error_breakdowns.compute_gold_bias(project.pk)["missed"]
    around = intervals.wilson_interval(right=8, n=24)
    assert (row["n"], row["n_problems"], row["value"]) == (24, 6, pytest.approx(1 / 3))
    assert row["high"] - row["low"] > 1.5 * (around.high - around.low)


@pytest.mark.fault
def test_signals_compare_each_rater_with_the_others() -> None:
    """One rater does most of the work, fast and in runs. A single rater in a project has no one to be compared with."""
    project = factories.make_project()
    most, careful = submitted_work.make_raters(project, 2)
    for number in range(24):
        submitted_work.submit_trace(most, factories.make_trace(project), [1, 1, 1])
        if number < 20:
            submitted_work.submit_trace(careful, factories.make_trace(project), [1, -1] if number % 2 else [1, 1, 1])
    StepReview.objects.filter(assignment__rater=most).update(active_ms=100)
    for turn in StepReview.objects.filter(assignment__rater=careful):
        turn.active_ms = 4000 + 100 * (turn.assignment_id % 7)
        turn.save(update_fields=["active_ms"])
    resolve.resolve_due_traces(now=NOW)
    found = signals.compute_signals(project_id=project.pk)
    assert {"quick", "alike", "no_errors"} <= set(signals.list_raised_kinds(found[most.pk]))
    assert signals.list_raised_kinds(found[careful.pk]) == []
    assert found[most.pk]["alike"].value == 24
    assert found[most.pk]["alike"].usual == pytest.approx(24 * 0.5**24)
    FirstErrorReport.objects.filter(rater=careful).delete()
    assert set(signals.compute_signals(project_id=project.pk)[most.pk]) == {"fast", "unread"}
