"""The jackknife interval against its formula, recomputed without each problem."""

import math

import pytest
from scipy import stats

from stats import coefficients, rating_patterns, step_agreement
from stats.estimates import Reason
from stats.rating_patterns import RatingPatterns

# (problem, how many ratings -1, 0, +1 a unit has, units). Problems 1 and 2 are equal; 7 and 8 have no pairs.
ROWS = [
    *[(0, (2, 0, 0), 3), (0, (1, 0, 1), 1)],
    *[(1, (0, 0, 2), 4), (1, (0, 1, 1), 1)],
    *[(2, (0, 0, 2), 4), (2, (0, 1, 1), 1)],
    *[(3, (0, 2, 0), 1), (3, (1, 1, 0), 2), (3, (0, 0, 3), 2)],
    *[(4, (2, 0, 0), 5)],
    *[(5, (0, 1, 2), 2), (5, (0, 2, 0), 2)],
    *[(6, (3, 0, 0), 1), (6, (1, 0, 1), 3), (6, (0, 0, 2), 6)],
    *[(7, (0, 1, 0), 9), (8, (1, 0, 0), 4)],
]
READ_TWICE = 7
FLOORS = {name: 0.0 if name == "pairwise_agreement" else -1.0 for name in step_agreement.STATISTIC_NAMES}


def value_of(name: str, made: RatingPatterns) -> float:
    found = step_agreement.estimate_step_statistics(made, with_bootstrap=False)[name].value
    assert found is not None
    return found


def written_out(name: str, level: float) -> tuple[float, float]:
    """Recompute the statistic without each problem."""
    left = [
        value_of(name, rating_patterns.patterns_from_rows(row for row in ROWS if row[0] != one))
        for one in range(READ_TWICE)
    ]

    def scale(value: float) -> float:
        return math.atanh(2 * value - 1 if FLOORS[name] == 0 else value)

    turned = [scale(value) for value in left]
    mean = sum(turned) / READ_TWICE
    spread = math.sqrt((READ_TWICE - 1) / READ_TWICE * sum((each - mean) ** 2 for each in turned))
    half = float(stats.t.ppf((1 + level) / 2, READ_TWICE - 1)) * spread
    middle = scale(value_of(name, rating_patterns.patterns_from_rows(ROWS)))
    ends = [math.tanh(middle + sign * half) for sign in (-1, 1)]
    low, high = [(end + 1) / 2 for end in ends] if FLOORS[name] == 0 else ends
    return low, high


@pytest.mark.parametrize("level", [0.95, 0.8])
@pytest.mark.parametrize("name", step_agreement.STATISTIC_NAMES)
def test_interval_is_the_jackknife_written_out(name: str, level: float) -> None:
    found = step_agreement.estimate_step_statistics(
        rating_patterns.patterns_from_rows(ROWS), level=level, with_bootstrap=False
    )[name]
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(written_out(name, level), abs=1e-9)
    assert found.counts.problems == READ_TWICE


def test_value_includes_units_rated_once() -> None:
    """Gwet's chance term uses single ratings, so problems without pairs always stay in the sums."""
    total = rating_patterns.sum_pairs(rating_patterns.patterns_from_rows(ROWS)).total()
    alone = rating_patterns.sum_pairs(
        rating_patterns.patterns_from_rows(row for row in ROWS if row[0] < READ_TWICE)
    ).total()
    assert value_of("gwet_ac1", rating_patterns.patterns_from_rows(ROWS)) == pytest.approx(
        float(coefficients.gwet_ac1(total))
    )
    assert float(coefficients.gwet_ac1(total)) != pytest.approx(float(coefficients.gwet_ac1(alone)))


def test_value_without_a_fisher_scale_has_a_plain_interval() -> None:
    """One problem of ten disagrees: without it the share is 1, which has no Fisher scale."""
    rows = [*[(problem, (0, 0, 2), 3) for problem in range(9)], (9, (1, 0, 1), 1)]
    found = step_agreement.estimate_step_statistics(rating_patterns.patterns_from_rows(rows), with_bootstrap=False)[
        "pairwise_agreement"
    ]
    left = [24 / 25] * 9 + [1.0]
    spread = math.sqrt(9 / 10 * sum((each - sum(left) / 10) ** 2 for each in left))
    half = float(stats.t.ppf(0.975, 9)) * spread
    assert found.interval is not None
    assert [found.interval.low, found.interval.high] == pytest.approx([27 / 28 - half, 1.0])


def test_one_category_leaves_alpha_undefined_and_ac1_at_one() -> None:
    """A scale of one value, as in a file with equal labels."""
    rows = [(problem, (2,), 3) for problem in range(6)]
    found = step_agreement.estimate_step_statistics(
        rating_patterns.patterns_from_rows(rows, values=(1.0,)), with_bootstrap=False
    )
    assert (found["alpha_nominal"].value, found["alpha_nominal"].reason) == (None, Reason.NO_VARIATION)
    assert found["gwet_ac1"].value == 1.0
