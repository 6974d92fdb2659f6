"""Which rollouts are asked for, and what they say: every step, halving, stopping early, progress."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.rollouts import (
    PrefixValue,
    RolloutFinding,
    RolloutOptions,
    TraceRollouts,
    is_side_settled,
    measure_progress,
)


def run(
    n_steps: int, answer: Callable[[int, int], bool | None], *, n: int = 8, own: bool | None = False, **options: Any
) -> tuple[int, RolloutFinding]:
    """Answer all rollouts of a trace, and return how many there were and the finding."""
    trace = TraceRollouts(range(n_steps), n, RolloutOptions(**options), own)
    n_asked = 0
    while not trace.is_complete:
        missing = trace.list_missing()
        assert missing
        random.Random(n_asked).shuffle(missing)
        for prefix, number in missing:
            n_asked += 1
            trace.record(prefix, number, answer(prefix, number))
    return n_asked, trace.conclude()


@settings(max_examples=30)
@given(
    search=st.sampled_from(["every_step", "binary"]),
    stops_early=st.booleans(),
    n_steps=st.integers(1, 20),
    data=st.data(),
)
def test_first_error_is_found(search: str, stops_early: bool, n_steps: int, data: Any) -> None:
    error = data.draw(st.integers(0, n_steps - 1))
    _, finding = run(n_steps, lambda prefix, number: prefix <= error, search=search, stops_early=stops_early)
    assert (finding.is_decided, finding.first_error) == (True, error)
    assert finding.ratings[error] == -1
    assert all(finding.ratings[position] == 1 for position in range(error))


def test_halving_takes_logarithmically_many_prefixes() -> None:
    n_asked, finding = run(64, lambda prefix, number: prefix <= 40, search="binary")
    assert n_asked == 8 * 6
    assert [value.n_steps for value in finding.values] == [32, 40, 41, 42, 44, 48, 64]


def test_right_answer_needs_no_search() -> None:
    n_asked, finding = run(12, lambda prefix, number: False, search="binary", own=True)
    assert (n_asked, finding.first_error, len(finding.ratings)) == (0, None, 12)


def test_soft_values_are_shares() -> None:
    _, finding = run(3, lambda prefix, number: number < 6 / prefix, n=8, own=None, threshold=0.3)
    assert [(value.n_steps, value.value) for value in finding.values] == [(1, 0.75), (2, 0.375), (3, 0.25)]
    assert finding.ratings == {0: 1, 1: 1, 2: -1}


def test_stopping_early_saves_rollouts() -> None:
    n_all, _ = run(10, lambda prefix, number: True, own=True)
    n_early, _ = run(10, lambda prefix, number: True, own=True, stops_early=True)
    assert (n_all, n_early) == (72, 9)


def test_prefix_without_half_of_its_answers_has_no_value() -> None:
    def answer(prefix: int, number: int) -> bool | None:
        return None if prefix == 2 and number > 2 else True

    for search in ("every_step", "binary"):
        _, finding = run(4, answer, search=search)
        assert not finding.is_decided
        assert finding.ratings == {}
    assert run(4, lambda prefix, number: None if number > 3 else prefix < 2)[1].first_error == 1


def test_early_stop_is_valid_at_every_look() -> None:
    """The share of prefixes that stop on the wrong side of the threshold stays below 5 %."""
    dice, n_wrong = random.Random(3), 0
    for _ in range(400):
        n_right = 0
        for n_read in range(1, 33):
            n_right += dice.random() < 0.3
            if is_side_settled(n_right, n_read, 32, 0.301):
                n_wrong += n_right / n_read > 0.301
                break
    assert n_wrong / 400 < 0.05


def test_progress_is_the_change_of_the_value() -> None:
    values = [PrefixValue(0, 48, 80), PrefixValue(1, 56, 70), PrefixValue(3, 0, 8)]
    first, second = measure_progress(values)
    assert [first.position, second.position] == [0, 2]
    assert [first.advantage, second.advantage] == pytest.approx([0.2, -0.8])
    assert [first.interval.low, first.interval.high] == pytest.approx([0.0524, 0.3339], abs=5e-5)
    assert measure_progress(values[1:]) == []


def test_progress_values_the_problem_alone() -> None:
    n_asked, finding = run(2, lambda prefix, number: prefix == 1, measures_progress=True, own=False)
    assert n_asked == 8 * 2
    assert [progress.advantage for progress in measure_progress(finding.values)] == [1.0, -1.0]


def test_trace_without_rateable_steps_is_undecided() -> None:
    trace = TraceRollouts([], 4, RolloutOptions(search="binary"), None)
    assert trace.is_complete
    assert not trace.conclude().is_decided
