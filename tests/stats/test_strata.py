"""Stratified draws: no fixed answering habit passes a screening."""

import functools
import random as chance
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats import strata
from stats.strata import GoldCandidate

Habit = Callable[[np.random.Generator], int | None]
N, MARK, RUNS = 30, 23, 400  # 23 of 30 is the first number from .75 on
POOL_SOUND = 0.72  # at the rate at which errors occur


def pool(n: int, seed: int, sound: float = POOL_SOUND) -> list[GoldCandidate]:
    """Traces of eight steps in three domains, as a project has them."""
    random = np.random.default_rng(seed)
    errors = [None if random.random() < sound else int(random.integers(8)) for _ in range(n)]
    return [
        GoldCandidate(trace, trace, strata.stratum_of([error], 8), f"domain {trace % 3}")
        for trace, error in enumerate(errors)
    ]


def always_positive(random: np.random.Generator) -> None:
    return None


def half_negative(random: np.random.Generator) -> int | None:
    """Rate each of eight steps negative with a probability of one half."""
    at = int(random.geometric(0.5)) - 1
    return at if at < 8 else None


@functools.cache
def sets(run: int) -> tuple[list[GoldCandidate], list[GoldCandidate]]:
    """A screening set at the natural error rate, and a stratified one."""
    known = pool(240, run)
    return known[:N], strata.draw_stratified(known, strata.equal_quotas(N), seed=str(run))


def passes(taken: list[GoldCandidate], habit: Habit, random: np.random.Generator) -> bool:
    """Count an answer as right if its stratum is right, which is more lenient than the exact step."""
    said = (habit(random) for _ in taken)
    right = sum(strata.stratum_of([each], 8) == one.place for one, each in zip(taken, said, strict=True))
    return right >= MARK


@pytest.mark.parametrize("habit", [always_positive, half_negative])
@pytest.mark.fault
def test_screening_rejects_raters_who_do_not_read(habit: Habit) -> None:
    """With the natural share of errors, a rater who always clicks positive passes one screening in three; with a drawn
    set, none."""
    random = np.random.default_rng(3)
    natural = stratified = 0
    for run in range(RUNS):
        as_they_come, drawn = sets(run)
        natural += passes(as_they_come, habit, random)
        stratified += passes(drawn, habit, random)
    assert stratified == 0
    if habit is always_positive:
        assert 0.3 < natural / RUNS < 0.45


def test_hidden_gold_reveals_raters_who_do_not_read() -> None:
    """For any pool, a quarter of every prefix of the order has no error, and domains alternate."""
    order = strata.interleave_strata(pool(600, 1, sound=0.5), seed="x")
    for n in (4, 12, 60):
        assert Counter(each.place for each in order[:n]) == dict.fromkeys(strata.STRATA, n // 4)
        assert set(Counter(each.domain for each in order[:12]).values()) == {4}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(strata.STRATA), st.sampled_from("ab"), st.integers(0, 2)),
        max_size=60,
    ),
    st.integers(0, 40),
    st.randoms(use_true_random=False),
)
def test_draw_keeps_its_rules(rows: list[tuple[int, str, str, int]], n: int, random: chance.Random) -> None:
    known = [GoldCandidate(trace, *row) for trace, row in enumerate(rows)]
    wanted = strata.equal_quotas(n)
    taken = strata.draw_stratified(known, wanted, seed="s")
    shuffled = list(known)
    random.shuffle(shuffled)
    assert strata.draw_stratified(shuffled, wanted, seed="s") == taken  # depends on the traces, not on their order
    counted, there = Counter(each.place for each in taken), Counter(each.place for each in known)
    assert len(set(taken)) == len(taken) <= n == sum(wanted.values())
    assert counted[strata.NONE] == min(wanted[strata.NONE], there[strata.NONE])
    errors = sum(there[place] for place in strata.ERROR_STRATA)
    assert len(taken) - counted[strata.NONE] == min(n - wanted[strata.NONE], errors)
    assert sorted(strata.interleave_strata(known, seed="s")) == known


def test_draw_repeats_no_problem_and_keeps_the_current_set() -> None:
    alike = [GoldCandidate(n, 1, strata.EARLY, "a") for n in range(5)]
    others = [GoldCandidate(10 + n, 10 + n, strata.EARLY, "a", tier=1) for n in range(2)]
    taken = strata.draw_stratified([*alike, *others], {strata.EARLY: 3}, seed="s")
    assert [each.problem for each in taken] == [1, *sorted((10, 11), key=[each.problem for each in taken].index)]
    assert len({each.problem for each in taken}) == 3


@pytest.mark.parametrize(
    ("accepted", "n_steps", "place"),
    [([None], 3, "none"), ([0, None], 3, "none"), ([0], 1, "early"), ([1, 2], 3, "middle"), ([2], 3, "late")],
)
def test_place_of_goes_by_thirds(accepted: list[int | None], n_steps: int, place: str) -> None:
    assert strata.stratum_of(accepted, n_steps) == place
    assert strata.stratum_of([99], n_steps) == "late"  # a file may name a step past the end
