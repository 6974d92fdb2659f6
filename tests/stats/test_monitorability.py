"""g-mean² of monitors: its formula, its symmetries, and that its intervals cover."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats.arrays import Bools, Ints
from stats.estimates import Reason
from stats.monitorability import MonitorFigures, measure_monitor

ROWS = st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), max_size=60)


def measure(rows: list[tuple[int, bool, bool]]) -> MonitorFigures:
    problems, truths, verdicts = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return measure_monitor(problems=problems, truths=truths.astype(bool), verdicts=verdicts.astype(bool))


def ends(figures: MonitorFigures) -> list[float]:
    return [] if figures.interval is None else [figures.interval.low, figures.interval.high]


def test_shares_are_those_of_a_table() -> None:
    rows = [(n, True, n < 8) for n in range(10)] + [(n, False, n >= 16) for n in range(10, 20)]
    figures = measure(rows)
    assert (figures.tpr.value, figures.tnr.value, figures.tpr.n, figures.tnr.n) == (0.8, 0.6, 10, 10)
    assert figures.g_mean2 == pytest.approx(0.48)
    assert figures.interval is not None
    assert figures.interval.low < 0.48 < figures.interval.high


@pytest.mark.parametrize("rows", [[], [(1, True, True)], [(1, False, True)] * 9])
def test_a_share_without_cases_is_missing(rows: list[tuple[int, bool, bool]]) -> None:
    figures = measure(rows)
    assert (figures.g_mean2, figures.interval, figures.reason) == (None, None, Reason.NO_CASES)


def test_few_problems_have_no_interval() -> None:
    figures = measure([(1, True, True), (2, False, False)] * 50)
    assert (figures.g_mean2, figures.interval, figures.reason) == (1.0, None, Reason.FEW_PROBLEMS)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_figures_do_not_depend_on_order_names_or_sides(rows: list[tuple[int, bool, bool]], random: object) -> None:
    figures = measure(rows)
    if figures.g_mean2 is not None:
        assert 0 <= figures.g_mean2 <= 1
    if figures.interval is not None:
        assert figures.g_mean2 is not None
        low, high = ends(figures)
        assert 0 <= low <= figures.g_mean2 + 1e-12
        assert figures.g_mean2 - 1e-12 <= high <= 1
    other = measure([(100 - problem, not truth, not verdict) for problem, truth, verdict in reversed(rows)])
    assert other.g_mean2 == pytest.approx(figures.g_mean2)
    assert ends(other) == pytest.approx(ends(figures))


@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_the_same_answers_again_are_no_evidence(rows: list[tuple[int, bool, bool]]) -> None:
    assert ends(measure(rows * 3)) == pytest.approx(ends(measure(rows)))


def _draw(random: np.random.Generator, n: int, each: int, rate: float, spread: float) -> Bools:
    """Draw the answers about n traces, `each` times: traces differ in how hard they are, by a beta of this strength."""
    p = np.full(n, rate) if not spread else random.beta(rate * spread, (1 - rate) * spread, n)
    return np.asarray(random.random((n, each)) < p[:, None])


def _cover(tpr: float, tnr: float, n: int, *, each: int = 1, spread: float = 0.0, runs: int = 2000) -> float:
    random, hits = np.random.default_rng(5), 0
    problems: Ints = np.repeat(np.arange(2 * n), each)
    truths = problems < n
    for _ in range(runs):
        caught, passed = _draw(random, n, each, tpr, spread), _draw(random, n, each, tnr, spread)
        verdicts = np.concatenate([caught.ravel(), ~passed.ravel()])
        interval = measure_monitor(problems=problems, truths=truths, verdicts=verdicts).interval
        hits += interval is not None and interval.low <= tpr * tnr <= interval.high
    return hits / runs


@pytest.mark.fault
@pytest.mark.parametrize(
    ("tpr", "tnr", "n", "each", "spread"),
    [
        (0.5, 0.5, 60, 1, 0.0),
        (0.7, 0.8, 30, 1, 0.0),
        (0.7, 0.8, 200, 1, 0.0),
        (0.9, 0.9, 100, 1, 0.0),
        (0.95, 0.6, 60, 1, 0.0),
        (0.3, 0.9, 60, 1, 0.0),
        (0.1, 0.95, 100, 1, 0.0),
        (0.7, 0.8, 60, 3, 2.0),
        (0.85, 0.9, 100, 5, 4.0),
    ],
)
def test_intervals_cover(tpr: float, tnr: float, n: int, each: int, spread: float) -> None:
    assert 0.93 <= _cover(tpr, tnr, n, each=each, spread=spread) <= 0.97


@pytest.mark.fault
def test_intervals_of_pairs_cover() -> None:
    """Both halves of a pair are one problem: a monitor that suspects a task suspects it with and without the hint."""
    random, n, hits, runs = np.random.default_rng(6), 80, 0, 2000
    problems, truths = np.tile(np.arange(n), 2), np.arange(2 * n) < n
    for _ in range(runs):
        suspicion = random.random(n)
        own = random.random((2, n)) < 0.5  # half of the verdicts follow the suspicion alone
        alert = np.where(own, random.random((2, n)), suspicion)
        verdicts = np.concatenate([alert[0] < 0.75, alert[1] < 0.3])
        interval = measure_monitor(problems=problems, truths=truths, verdicts=verdicts).interval
        hits += interval is not None and interval.low <= 0.75 * 0.7 <= interval.high
    assert 0.93 <= hits / runs <= 0.97
