"""Batches are ordered, the recorded probabilities are true, and estimates from them are unbiased."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prm.selection import draws
from prm.selection.draws import DrawArm, DrawRules, PoolDraw

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


@pytest.mark.fault
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


@pytest.mark.fault
def test_q_is_the_probability_of_the_draw_with_strata_and_spread() -> None:
    """The first three draws of the default design are as frequent as their q, given the draws before them."""
    scores, rules = np.array([1.0, 1.3, 0.8, 1.1, 0.6]), DrawRules(temperature=0.4, has_one_per_problem=False)
    features = np.array([[0.0, 0.0], [0.1, 0.0], [2.0, 1.0], [2.0, 1.1], [-1.0, 3.0]])
    n_drawn: Counter[tuple[int, ...]] = Counter()
    recorded: dict[tuple[int, ...], float] = {}
    for seed in range(6000):
        drawn = draws.draw_in_order(
            scores=scores,
            problems=np.arange(5),
            domains=np.zeros(5, dtype=np.int64),
            places=np.random.default_rng([7, seed]).random(5),
            size=3,
            rules=rules,
            random=np.random.default_rng(seed),
            strata=np.array([0, 1, 1, 0, 1]),
            features=features,
        )
        path: tuple[int, ...] = ()
        for each in drawn:
            path = (*path, each.trace)
            n_drawn[path] += 1
            assert recorded.setdefault(path, each.q) == each.q  # q depends on the draws before it alone
    assert sum(recorded[(trace,)] for trace in range(5)) == pytest.approx(1)
    assert len(recorded) == 5 + 5 * 4 + 5 * 4 * 3
    for path, n in n_drawn.items():
        n_before, q = n_drawn[path[:-1]] if path[:-1] else 6000, recorded[path]
        assert n / n_before == pytest.approx(q, abs=5 * (q * (1 - q) / n_before) ** 0.5 + 2 / n_before)


def test_q_follows_from_its_formula_in_a_large_pool() -> None:
    """Recompute each q from the draws before it: of 1,000 traces in two strata, one per problem, spread out."""
    n, rules, random = 1000, DrawRules(temperature=0.3), np.random.default_rng(5)
    scores, problems, strata = random.random(n) + 0.05, random.integers(0, 700, n), random.integers(0, 2, n)
    features = random.normal(size=(n, 4))
    drawn = draws.draw_in_order(
        scores=scores,
        problems=problems,
        domains=np.zeros(n, dtype=np.int64),
        places=random.random(n),
        size=400,
        rules=rules,
        random=np.random.default_rng(6),
        strata=strata,
        features=features,
    )
    is_eligible, nearest = np.ones(n, dtype=np.bool_), np.full(n, np.inf)
    for draw in drawn:
        weights = np.where(is_eligible, scores ** (1 / rules.temperature), 0.0)
        kinds = [weights] if draw.rank == 1 else [weights, weights * nearest ** (1 / rules.temperature)]
        same = strata == strata[draw.trace]
        inside = sum(each[draw.trace] / each[same].sum() for each in kinds) / len(kinds)
        shares = 0.2 / draw.n_left + 0.8 * same.mean() * inside
        assert draw.q == pytest.approx(shares, rel=1e-9)
        is_eligible &= problems != problems[draw.trace]
        nearest = np.minimum(nearest, np.sqrt(((features - features[draw.trace]) ** 2).sum(axis=1)))


def test_policy_draws_from_each_stratum_in_proportion_to_its_size() -> None:
    scores = np.where(np.arange(1000) < 300, 50.0, 0.01)  # of the first stratum, all scores are higher
    drawn = draws.draw_in_order(
        scores=scores,
        problems=np.arange(1000),
        domains=np.zeros(1000, dtype=np.int64),
        places=np.random.default_rng(1).random(1000),
        size=300,
        rules=RULES,
        random=np.random.default_rng(2),
        strata=(np.arange(1000) < 300).astype(np.int64),
    )
    assert np.mean([draw.trace < 300 for draw in drawn]) == pytest.approx(0.3, abs=0.06)


def test_spread_draws_cover_more_of_feature_space() -> None:
    """Of 20 clusters with 30 traces each, equal scores draw the same one often; spread draws seldom do."""
    cluster = np.repeat(np.arange(20), 30)
    features = np.column_stack([np.cos(cluster), np.sin(cluster), cluster / 10.0])
    n_clusters = []
    for given_features in (None, features):
        drawn = draws.draw_in_order(
            scores=np.ones(600),
            problems=np.arange(600),
            domains=np.zeros(600, dtype=np.int64),
            places=np.random.default_rng(1).random(600),
            size=20,
            rules=RULES,
            random=np.random.default_rng(3),
            features=given_features,
        )
        n_clusters.append(len({int(cluster[draw.trace]) for draw in drawn}))
    assert n_clusters[1] > n_clusters[0]


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


@pytest.mark.fault
@pytest.mark.parametrize(
    ("has_one_per_problem", "overlap", "is_spread"),
    [(False, 1, False), (True, 1, False), (True, 2, False), (True, 1, True)],
)
def test_estimates_from_the_recorded_q_are_unbiased(has_one_per_problem: bool, overlap: int, is_spread: bool) -> None:
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
    random_strata, random_features = random.integers(0, 2, n), random.normal(size=(n, 3))
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
            strata=random_strata if is_spread else None,
            features=random_features if is_spread else None,
        )
        chosen = losses[[draw.trace for draw in result]]
        estimate = draws.estimate_pool_mean(losses=chosen, q=np.array([draw.q for draw in result]), pool_size=n)
        plain.append(estimate[0])
        normalised.append(estimate[1])
        naive.append(chosen.mean())
    error = 4 * np.std(plain) / 1000**0.5
    assert np.mean(plain) == pytest.approx(losses.mean(), abs=error)
    assert np.mean(normalised) == pytest.approx(losses.mean(), abs=error + 0.01)  # its bias falls with 1/M
    assert np.mean(naive) > losses.mean() + 0.03


@pytest.mark.fault
def test_audit_slice_is_a_random_sample_and_the_uniform_draws_are_not() -> None:
    """The policy takes the errors, uniform draws come from the rest; the slice includes the policy's draws."""
    losses = (np.arange(200) % 4 == 0).astype(float)
    uniform_losses, slices = [], []
    for seed in range(800):
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
    assert size > len(uniform_losses) / 800  # it is larger, too
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
    estimate = draws.estimate_pool_mean(losses=losses, q=np.array([draw.q for draw in result]), pool_size=5)
    assert estimate == pytest.approx((0.6, 0.6))


def test_estimate_of_uniform_draws_is_their_mean() -> None:
    q = 1 / np.arange(100, 80, -1)
    assert draws.lure_weights(q=q, pool_size=100) == pytest.approx(np.ones(20))
    slice_ = draws.estimate_slice_mean(
        losses=np.arange(20.0), is_in_slice=(np.arange(20) < 3).astype(float), q=q, pool_size=100
    )
    assert slice_ == pytest.approx(1.0)


def test_estimate_refuses_a_probability_of_zero() -> None:
    with pytest.raises(ValueError, match="draws"):
        draws.lure_weights(q=np.array([0.5, 0.0]), pool_size=10)


@pytest.mark.parametrize("rules", [{"uniform_share": 0.0}, {"temperature": 0.0}, {"domain_quota": 0.0}])
def test_rules_that_leave_traces_without_a_chance_are_refused(rules: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="share"):
        DrawRules(**rules)  # type: ignore[arg-type]  # one rule among fields of several types
