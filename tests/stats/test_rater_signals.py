"""Rater signals: raised by whole intervals only, and not by random raters."""

from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import rater_signals


def test_share_and_reach_are_raised_by_their_intervals() -> None:
    few, many = (rater_signals.check_share_below(n // 4, n, below=0.2, least=30) for n in (40, 4000))
    assert few is not None
    assert many is not None
    assert (few.value, few.is_raised, many.is_raised) == (0.25, False, True)
    assert rater_signals.check_share_below(3, 29, below=0.2, least=30) is None
    short = rater_signals.check_share_reaches(2, 60, mark=0.2, least=20, usual=0.3)
    assert short is not None
    assert (short.is_raised, short.usual) == (True, 0.3)


def test_slope_is_newcombes() -> None:
    """56 of 70 and 48 of 80: Newcombe's table II, example (a), has .0524 to .3339 for the difference of .2."""
    found = rater_signals.check_decline((56, 70), (48, 80), least=10)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((-0.2, -0.3339, -0.0524), abs=1e-4)
    assert found.is_raised
    assert rater_signals.check_decline((9, 9), (1, 100), least=10) is None


def test_quickness_is_in_deviations_of_all() -> None:
    everybody = np.log(np.random.default_rng(0).lognormal(6, 0.3, 2000))
    hasty = rater_signals.check_speed(everybody[:40] - 1.2, everybody, least=10)
    assert hasty is not None
    assert hasty.value == pytest.approx(-4, abs=0.4)
    assert hasty.low < hasty.value < hasty.high
    assert hasty.is_raised
    usual = rater_signals.check_speed(everybody[:40], everybody, least=10)
    assert usual is not None
    assert not usual.is_raised
    assert rater_signals.check_speed(everybody[:40], np.full(40, 2.0), least=10) is None  # no spread to measure by


def test_run_is_compared_with_chance() -> None:
    usual: dict[Hashable, float] = {None: 0.7, 0: 0.3}
    found = rater_signals.check_longest_run([None] * 6 + [0] * 9 + [None] * 5, usual, least=20)
    assert found is not None
    assert (found.value, found.is_raised) == (9, True)  # the run with the rarer outcome counts, not the longer one
    sound = rater_signals.check_longest_run([None] * 8 + [0, None] * 8, usual, least=20)
    assert sound is not None
    assert not sound.is_raised


def test_run_of_few_is_no_straight_line_however_rare_its_end() -> None:
    """Two consecutive traces with an error at a rare step are a coincidence."""
    found = rater_signals.check_longest_run([None, 12, 12, None, 0] * 5, {None: 0.7, 0: 0.3}, least=20)
    assert found is not None
    assert (found.value, found.is_raised) == (2, False)


@given(st.integers(0, 2**32 - 1))
def test_run_of_raters_at_random_is_hardly_ever_raised(seed: int) -> None:
    random = np.random.default_rng(seed)
    raised = [
        rater_signals.check_longest_run((random.random(100) < 0.6).tolist(), {True: 0.6, False: 0.4}, least=20)
        for _ in range(40)
    ]
    assert sum(each is not None and each.is_raised for each in raised) <= 5


@pytest.mark.parametrize(
    ("seconds", "is_impossible"),
    [
        ([12.0, 0.3, 0.3, 0.3], False),  # reads the trace first
        ([4.0, 5.0, 3.0, 6.0], False),
        ([0.3, 0.3, 0.3, 0.3], True),
        ([3.0, 0.3, 0.3, 0.3], True),  # 80 words in less than 4 seconds, most steps in an instant
        ([1.0, 1.0, 1.0, 1.0], False),  # skims, but deliberately
        ([0.45, 0.45, 0.45, 0.45], True),  # 44 words per second
    ],
)
def test_reading_needs_time(seconds: list[float], is_impossible: bool) -> None:
    ms, n_fast = 1000 * sum(seconds), sum(each < 0.4 for each in seconds)
    found = rater_signals.is_faster_than_reading(ms=ms, words=80, n_fast=n_fast, n_steps=len(seconds))
    assert found == is_impossible
