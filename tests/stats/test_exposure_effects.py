import numpy as np
import pytest
import scipy.stats

from stats import exposure_effects
from stats.exposure_effects import HORIZON, ShareEffect


def test_power_is_that_of_the_published_example() -> None:
    """`power.prop.test(n = 50, p1 = .50, p2 = .75)` of R's manual gives 0.740, and power = .90 gives n = 76.7."""
    assert exposure_effects.compute_power(0.5, 0.25, 50, 50) == pytest.approx(0.7401659, abs=1e-6)
    assert exposure_effects.plan_sample_size(0.5, 0.25, power=0.9) == 77


def test_difference_has_newcombes_interval() -> None:
    """R. G. Newcombe (1998), table II, example (a): 56/70 against 48/80."""
    effect = ShareEffect(56, 70, 48, 80)
    assert effect.difference == pytest.approx(0.2)
    assert effect.interval is not None
    assert (effect.interval.low, effect.interval.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert effect.n_needed == exposure_effects.plan_sample_size(0.6, 0.15)


def test_an_effect_without_cases_has_no_value() -> None:
    effect = ShareEffect(0, 0, 1, 4)
    assert (effect.difference, effect.interval, effect.power) == (None, None, None)


def test_times_are_compared_by_welchs_interval() -> None:
    one, other = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 4.0, 6.0])
    effect = exposure_effects.compare_times(np.exp(one).tolist(), np.exp(other).tolist())
    expected = scipy.stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    assert effect is not None
    assert np.log([effect.ratio, effect.interval.low, effect.interval.high]) == pytest.approx(
        [-1.5, expected.low, expected.high]
    )
    assert exposure_effects.compare_times([1.0], [2.0, 3.0]) is None
    assert exposure_effects.compare_times([1.0, 1.0], [1.0, 1.0]) is None


# Of 2000 simulated projects; the bars leave two standard errors of the simulated share.
RUNS = 2000


def find_error(share: float) -> float:
    return 2 * float(np.sqrt(share * (1 - share) / RUNS))


@pytest.mark.parametrize(
    ("blind", "ratio", "n_arms"), [(0.05, 1, 1), (0.15, 1, 1), (0.05, 2, 2), (0.15, 2, 2), (0.2, 2, 2), (0.2, 3, 1)]
)
def test_fifteen_points_are_found_within_111_exposed_decisions(blind: float, ratio: float, n_arms: int) -> None:
    """`ratio` blind decisions for each exposed one. The arms share the error rate."""
    alpha = exposure_effects.ALPHA / n_arms
    stops = exposure_effects.simulate_stops(blind, blind + 0.15, n=HORIZON, runs=RUNS, blind_ratio=ratio, alpha=alpha)
    assert stops.mean() >= 0.8 - find_error(0.8) / 2


@pytest.mark.fault
@pytest.mark.parametrize("rate", [0.02, 0.05, 0.15, 0.3])
@pytest.mark.parametrize("ratio", [1, 3])
def test_harmless_suggestions_are_stopped_in_at_most_one_of_twenty_projects(rate: float, ratio: float) -> None:
    stops = exposure_effects.simulate_stops(rate, rate, n=1000, runs=RUNS, blind_ratio=ratio, seed=1)
    assert stops.mean() <= 0.05 + find_error(0.05)


def test_statistic_is_the_mid_p_value_of_fishers_exact_test() -> None:
    hits, n, blind_hits, blind_n = 7, 40, 3, 90
    null = scipy.stats.hypergeom(n + blind_n, n, hits + blind_hits)
    expected = null.sf(hits) + null.pmf(hits) / 2
    z = exposure_effects.compute_z(hits, n, blind_hits, blind_n)
    assert scipy.stats.norm.sf(z) == pytest.approx(expected, rel=1e-6)
    assert exposure_effects.compute_z(0, 5, 0, 9) == 0
    assert 0 < exposure_effects.compute_z(400, 400, 0, 400) < 8


def test_larger_blind_arm_moves_the_horizon() -> None:
    assert exposure_effects.plan_horizon(0.25, 0.5) == pytest.approx(148)
    assert exposure_effects.plan_horizon(0.9, 0.1) == HORIZON
    assert exposure_effects.plan_looks()[:8] == pytest.approx(range(20, 112, 13))


def test_spending_never_exceeds_alpha() -> None:
    spent = [exposure_effects.spend_alpha(n) for n in exposure_effects.plan_looks()]
    assert spent == sorted(spent)
    assert spent[-1] < exposure_effects.ALPHA


def test_test_reads_decisions_in_order_and_waits_for_the_first_look() -> None:
    exposed = [True, False] * 60
    follows = [True, False] * 60  # exposed raters always follow, blind ones never
    early = exposure_effects.find_harm(exposed[:30], follows[:30])
    assert (early.is_harmful, early.z, early.n_now) == (False, None, 15)
    found = exposure_effects.find_harm(exposed, follows)
    assert found.is_harmful
    assert found.n < 60
    harmless = exposure_effects.find_harm(exposed, [False] * 120)
    assert not harmless.is_harmful
    assert harmless.z == 0


def test_simulation_agrees_with_the_test_of_single_decisions() -> None:
    draws = np.random.default_rng(5)
    exposed = [True, False] * HORIZON
    chances = np.where(exposed, 0.3, 0.15)
    stops = [
        exposure_effects.find_harm(exposed, (draws.random(2 * HORIZON) < chances).tolist()).is_harmful
        for _ in range(100)
    ]
    assert np.mean(stops) == pytest.approx(0.83, abs=0.12)
