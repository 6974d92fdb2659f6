"""Evidence against raters: worthless raters are found and others are not, at the stated rate of each signal."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest

from bench import protection as campaigns
from bench.protection import ALL_POSITIVE, SimulatedProject, SimulatedRater
from stats import first_error_dawid_skene, first_error_reports, rater_protection
from stats.arrays import Ints
from stats.first_error_reports import ReportArrays
from stats.rater_protection import FALSE_PAUSES, WEIGHTS, ObservedWork, RaterEvidence

LENGTH = 5


def observe(
    rows: list[tuple[int, int, int]], *, known: Mapping[int, set[int]] | None = None, fast: Ints | None = None
) -> ObservedWork:
    """Build observed work from rows (trace, rater, end); every trace has five steps."""
    traces, raters, ends = np.array(rows).T
    n = len(rows)
    return ObservedWork(
        reports=ReportArrays(
            traces=traces,
            raters=raters,
            ends=ends,
            is_censored=np.zeros(n, dtype=np.bool_),
            lengths=np.full(traces.max() + 1, LENGTH),
            problems=np.arange(traces.max() + 1),
            domains=np.zeros(traces.max() + 1, dtype=np.int64),
        ),
        known=known or {},
        is_impossible=np.zeros(n, dtype=np.bool_) if fast is None else np.isin(raters, fast),
        is_timed=np.full(n, fast is not None),
        is_counted=np.ones(n, dtype=np.bool_),
    )


def crowd(bad: SimulatedRater, *, rounds: int, seed: int = 3) -> list[RaterEvidence]:
    project = SimulatedProject.create(traces=300, gold=40, error_shares=[0.6], overlap=2, seed=seed)
    people = [bad, *(campaigns.draw_honest(project.random) for _ in range(5))]
    for _ in range(rounds):
        for number, rater in enumerate(people):
            project.submit(number, rater)
    return rater_protection.weigh_evidence(project.observe())


def test_no_reports_are_no_evidence() -> None:
    empty = observe([(0, 0, LENGTH)])
    rows = {name: np.zeros(0, int) for name in ("traces", "raters", "ends")}
    nothing = dataclasses.replace(empty.reports, **rows, is_censored=np.zeros(0, dtype=np.bool_))
    assert rater_protection.weigh_evidence(dataclasses.replace(empty, reports=nothing)) == []
    [alone] = rater_protection.weigh_evidence(empty)
    assert not alone.is_overwhelming


@pytest.mark.parametrize(
    "bad", [ALL_POSITIVE, SimulatedRater(0, stops=1.0), SimulatedRater(0, stops=0.3)], ids=["none", "first", "random"]
)
def test_worthless_rater_is_found_and_nobody_else(bad: SimulatedRater) -> None:
    assert [each.is_overwhelming for each in crowd(bad, rounds=40)] == [True] + [False] * 5


def test_joint_bound_is_the_weighted_mean() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    for each in crowd(ALL_POSITIVE, rounds=10):
        mean = sum(weight * np.exp(each.signals[name].log_e) for name, weight in WEIGHTS.items())
        assert each.joint.log_e == pytest.approx(np.log(mean))
        assert each.is_overwhelming == (mean >= 1 / FALSE_PAUSES)


def test_agreement_with_one_other_rater_is_no_evidence() -> None:
    rows = [(trace, rater, end) for trace in range(60) for rater, end in ((0, LENGTH), (1, trace % LENGTH))]
    assert [each.signals["agreement"].log_e for each in rater_protection.weigh_evidence(observe(rows))] == [0, 0]


def test_gold_decides_against_a_majority() -> None:
    """Three lazy raters agree with each other; hidden gold shows that the fourth is right."""
    rows = [(t, rater, t % LENGTH if rater == 3 else LENGTH) for t in range(40) for rater in range(4)]
    gold = {trace: {trace % LENGTH} for trace in range(40)}
    found = rater_protection.weigh_evidence(observe(rows, known=gold))
    assert [each.is_overwhelming for each in found] == [True, True, True, False]


def test_known_answers_are_clamped() -> None:
    reports = observe([(0, 0, LENGTH), (0, 1, LENGTH)]).reports
    places = first_error_reports.enumerate_places(reports.lengths)
    fit = first_error_dawid_skene.fit_reports(reports, possible=places.steps == 2)
    assert fit.posterior.tolist() == [0, 0, 1, 0, 0, 0]


def test_result_that_others_share_is_no_evidence() -> None:
    """In a pool without errors all raters mark everything positive."""
    rows = [(trace, rater, LENGTH) for trace in range(80) for rater in range(4)]
    for each in rater_protection.weigh_evidence(observe(rows)):
        assert each.signals["repeats"].log_e < 1
        assert not each.is_overwhelming


def test_identical_results_count_where_others_differ() -> None:
    rows = [
        (trace, rater, 0 if rater == 3 else 1 + (trace + rater) % LENGTH) for trace in range(60) for rater in range(4)
    ]
    found = rater_protection.weigh_evidence(observe(rows))
    assert found[3].signals["repeats"].log_e > 20
    assert max(each.signals["repeats"].log_e for each in found[:3]) < 0


def test_speed_counts_only_where_others_are_slower() -> None:
    rows = [(trace, rater, trace % LENGTH) for trace in range(40) for rater in range(4)]
    one, everybody = (
        rater_protection.weigh_evidence(observe(rows, fast=np.array(who)))[0].signals["speed"].log_e
        for who in ([0], [0, 1, 2, 3])
    )
    assert one > 40
    assert everybody < 1


def test_reports_before_a_resume_do_not_count() -> None:
    rows = [
        (trace, rater, 0 if rater == 3 else 1 + (trace + rater) % LENGTH) for trace in range(60) for rater in range(4)
    ]
    work = observe(rows)
    later = dataclasses.replace(work, is_counted=(work.reports.raters != 3) | (work.reports.traces >= 58))
    [*others, resumed] = rater_protection.weigh_evidence(later)
    assert not resumed.is_overwhelming
    assert max(each.n for each in resumed.signals.values()) <= 2
    assert others[0].signals == rater_protection.weigh_evidence(work)[0].signals


@pytest.mark.parametrize(("right_on_errors", "right_on_clean"), [(0.4, 0.4), (0.4, 0.95), (0.65, 0.65)])
def test_gold_keeps_its_promise_at_the_floor(right_on_errors: float, right_on_clean: float) -> None:
    """However often one looks, at most the promised share of raters above the floor ever reach the bound."""
    random = np.random.default_rng(5)
    crossed, runs, n = 0, 150, 60
    for _ in range(runs):
        truth = np.where(random.random(n) < 0.6, random.integers(0, LENGTH, n), LENGTH)
        is_right = random.random(n) < np.where(truth < LENGTH, right_on_errors, right_on_clean)
        ends = np.where(is_right, truth, np.where(truth < LENGTH, LENGTH, 0))
        work = observe(
            [(t, 0, int(end)) for t, end in enumerate(ends)], known={t: {int(e)} for t, e in enumerate(truth)}
        )
        rows = np.arange(n)
        logs = [rater_protection._weigh_gold(work, rows[:seen]).log_e for seen in range(5, n + 1, 5)]
        crossed += max(logs) >= -np.log(FALSE_PAUSES)
    assert crossed <= 5  # 2.25 expected at the bound


def test_simulated_events_keep_the_promise() -> None:
    random = np.random.default_rng(6)
    at_most = np.full(120, 0.4)
    best = [
        max(rater_protection._weigh_events(happened[:n], at_most[:n]).log_e for n in range(5, 121, 5))
        for happened in random.random((400, 120)) < 0.4
    ]
    assert sum(log >= -np.log(FALSE_PAUSES) for log in best) <= 12  # 6 expected at the bound
    always = np.ones(30, dtype=np.bool_)
    assert rater_protection._weigh_events(always, at_most[:30]).log_e > 20
