"""Batches are ordered, the recorded probabilities are true, and estimates from them are unbiased."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prm.evaluation import lure
from prm.selection import draws
from prm.selection.draws import DrawArm, DrawRules, InvalidDrawRules, PoolDraw

RULES = DrawRules()


def batch(
    scores: list[float], *, size: int, seed: int = 0, rules: DrawRules = RULES, **columns: list[int]
) -> list[PoolDraw]:
    n = len(scores)
    return draws.draw_in_order(
        scores=np.array(scores),
        problems=np.array(columns.get("problems", range(n))),
        domains=np.array(columns.get("domains", [0] * n)),
        places=np.random.default_rng([7, seed]).random(n),
        size=size,
        rules=rules,
        random=np.random.default_rng(seed),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=25), st.integers(1, 30), st.integers(0, 99), st.data())
def test_batch_draws_each_trace_once_and_counts_what_is_left(
    scores: list[float], size: int, seed: int, data: st.DataObject
) -> None:
    n = len(scores)
    problems = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    result = batch(scores, size=size, seed=seed, problems=problems)
    assert len({draw.trace for draw in result}) == len(result) == min(size, n)
    assert [draw.rank for draw in result] == list(range(1, len(result) + 1))
    assert [draw.n_left for draw in result] == list(range(n, n - len(result), -1))
    assert all(0.2 / draw.n_left <= draw.q + 1e-12 <= 1 + 1e-9 for draw in result)
    policy = [problems[draw.trace] for draw in result if draw.arm is DrawArm.POLICY]
    assert len(set(policy)) == len(policy)


def test_q_is_the_probability_of_the_draw() -> None:
    """Over many seeds, first draws, and second draws given the first, are as frequent as their q."""
    scores, rules = [1.0, 1.2, 1.5, 0.7], DrawRules(temperature=0.5)
    first, second = np.zeros(4), np.zeros((4, 4))
    q_first, q_second = np.zeros(4), np.zeros((4, 4))
    for seed in range(6000):
        one, two = batch(scores, size=2, seed=seed, rules=rules, problems=[0, 0, 1, 2])
        first[one.trace] += 1
        second[one.trace, two.trace] += 1
        q_first[one.trace], q_second[one.trace, two.trace] = one.q, two.q
    assert first / first.sum() == pytest.approx(q_first, abs=0.025)
    assert second / second.sum(axis=1, keepdims=True) == pytest.approx(q_second, abs=0.06)
    assert q_first.sum() == pytest.approx(1)
    assert q_second.sum(axis=1) == pytest.approx(np.ones(4))


def test_uniform_share_is_respected() -> None:
    result = batch(np.linspace(0.1, 1, 4000).tolist(), size=2000)
    assert sum(draw.arm is DrawArm.UNIFORM for draw in result) / 2000 == pytest.approx(0.2, abs=0.03)


def test_policy_prefers_high_scores_less_at_high_temperature() -> None:
    scores = np.linspace(0.1, 1, 1000)
    means = [
        np.mean([draw.score for draw in batch(scores.tolist(), size=100, rules=DrawRules(temperature=temperature))])
        for temperature in (0.01, 0.1, 1.0)
    ]
    assert means == sorted(means, reverse=True)


def test_domain_quota_restricts_only_the_policy() -> None:
    result = batch(
        [1.0] * 50 + [0.5] * 50,
        size=40,
        domains=[0] * 50 + [1] * 50,
        rules=DrawRules(domain_quota=0.25, temperature=0.05),
    )
    by_policy = [draw.trace >= 50 for draw in result if draw.arm is DrawArm.POLICY]
    assert by_policy.count(False) <= 10
    assert by_policy.count(True) <= 10
    assert len(result) == 40


def test_uniform_walk_takes_all_if_the_policy_has_no_eligible_trace() -> None:
    result = batch([1.0] * 6, size=6, problems=[0] * 6)
    assert [draw.arm for draw in result[1:]] == [DrawArm.UNIFORM] * 5
    assert [draw.q for draw in result[1:]] == pytest.approx([1 / 5, 1 / 4, 1 / 3, 1 / 2, 1])


def test_scores_far_apart_stay_drawable() -> None:
    result = batch([1e-9, 1.0, 1e-200, 5.0], size=4, rules=DrawRules(temperature=0.02))
    assert {draw.trace for draw in result} == {0, 1, 2, 3}
    assert all(np.isfinite(draw.q) and draw.q > 0 for draw in result)


@pytest.mark.parametrize(("has_one_per_problem", "overlap"), [(False, 1), (True, 1), (True, 2)])
def test_estimates_from_the_recorded_q_are_unbiased(has_one_per_problem: bool, overlap: int) -> None:
    """Estimate the pool's error rate although the policy prefers errors.

    With overlap, a trace's loss is the mean of its raters, who miss some errors and raise some false alarms.
    """
    random = np.random.default_rng(5)
    n, size, rules = 60, 20, DrawRules(temperature=0.3, has_one_per_problem=has_one_per_problem, domain_quota=0.6)
    losses = (random.random(n) < 0.3).astype(float)
    if overlap > 1:
        losses = (random.random((overlap, n)) < np.where(losses > 0, 0.8, 0.1)).mean(axis=0)
    scores = np.where(losses > 0, 1.0, 0.6) * random.uniform(0.8, 1.2, n)
    problems, domains = random.integers(0, 25, n), random.integers(0, 2, n)
    plain, normalised, naive = [], [], []
    for seed in range(1000):
        result = draws.draw_in_order(
            scores=scores,
            problems=problems,
            domains=domains,
            places=np.random.default_rng([7, seed]).random(n),
            size=size,
            rules=rules,
            random=np.random.default_rng(seed),
        )
        chosen = losses[[draw.trace for draw in result]]
        estimate = lure.estimate_pool_mean(losses=chosen, q=np.array([draw.q for draw in result]), pool_size=n)
        plain.append(estimate.plain)
        normalised.append(estimate.self_normalized)
        naive.append(chosen.mean())
    error = 4 * np.std(plain) / 1000**0.5
    assert np.mean(plain) == pytest.approx(losses.mean(), abs=error)
    assert np.mean(normalised) == pytest.approx(losses.mean(), abs=error + 0.01)  # its bias falls with 1/M
    assert np.mean(naive) > losses.mean() + 0.03


def test_audit_slice_is_a_random_sample_and_the_uniform_draws_are_not() -> None:
    """The policy takes the errors, uniform draws come from the rest; the slice includes the policy's draws."""
    losses = (np.arange(200) % 4 == 0).astype(float)
    uniform_losses, slices = [], []
    for seed in range(300):
        places = np.random.default_rng([7, seed]).random(200)
        result = batch(np.where(losses > 0, 1.0, 0.5).tolist(), size=80, seed=seed)
        uniform = [draw.trace for draw in result if draw.arm is DrawArm.UNIFORM]
        is_drawn, is_uniform = np.zeros((2, 200), dtype=np.bool_)
        is_drawn[[draw.trace for draw in result]] = is_uniform[uniform] = True
        kept = draws.mask_audit_slice(places=places, is_drawn=is_drawn, is_uniform=is_uniform)
        uniform_losses += losses[uniform].tolist()
        slices.append((losses[kept].mean(), kept.sum()))
    rate, size = np.mean(slices, axis=0)
    assert rate == pytest.approx(0.25, abs=0.02)
    assert size > len(uniform_losses) / 300  # it is larger, too
    assert np.mean(uniform_losses) < 0.2


@pytest.mark.parametrize(
    ("drawn", "uniform", "expected"),
    [
        ([], [], []),
        ([0, 1, 2, 3], [0], [0, 1, 2, 3]),  # everything is drawn
        ([0, 1, 3], [0], [1]),  # the furthest draw and later traces are left out
        ([1, 0], [1, 0], [1]),
        ([0, 3], [0, 3], []),  # trace 1 joined the pool later, before both on the walk
    ],
)
def test_audit_slice_ends_at_the_furthest_draw_and_before_undrawn_traces(
    drawn: list[int], uniform: list[int], expected: list[int]
) -> None:
    is_drawn, is_uniform = np.zeros((2, 4), dtype=np.bool_)
    is_drawn[drawn], is_uniform[uniform] = True, True
    kept = draws.mask_audit_slice(places=np.array([0.2, 0.1, 0.9, 0.3]), is_drawn=is_drawn, is_uniform=is_uniform)
    assert np.flatnonzero(kept).tolist() == expected


def test_estimate_of_a_whole_pool_is_its_mean() -> None:
    losses = np.array([1.0, 0, 0, 1, 1])
    result = batch([1, 2, 3, 4, 5], size=5)
    estimate = lure.estimate_pool_mean(losses=losses, q=np.array([draw.q for draw in result]), pool_size=5)
    assert (estimate.plain, estimate.self_normalized) == pytest.approx((0.6, 0.6))


def test_estimate_of_uniform_draws_is_their_mean() -> None:
    q = 1 / np.arange(100, 80, -1)
    assert lure.lure_weights(q=q, pool_size=100) == pytest.approx(np.ones(20))
    slice_ = lure.estimate_slice_mean(
        losses=np.arange(20.0), is_in_slice=(np.arange(20) < 3).astype(float), q=q, pool_size=100
    )
    assert slice_ == pytest.approx(1.0)


def test_estimate_refuses_a_probability_of_zero() -> None:
    with pytest.raises(lure.ImpossibleDraws):
        lure.lure_weights(q=np.array([0.5, 0.0]), pool_size=10)


@pytest.mark.parametrize("rules", [{"uniform_share": 0.0}, {"temperature": 0.0}, {"domain_quota": 0.0}])
def test_rules_that_leave_traces_without_a_chance_are_refused(rules: dict[str, float]) -> None:
    with pytest.raises(InvalidDrawRules):
        DrawRules(**rules)  # type: ignore[arg-type]  # one rule among fields of several types
