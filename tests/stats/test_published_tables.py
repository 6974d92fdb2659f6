"""Every statistic on the ten published tables, to six decimals."""

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stats import coefficients, rating_patterns
from stats.arrays import Floats
from stats.rating_patterns import PairSums
from tests.stats import published_tables

STATISTICS: dict[str, Callable[[PairSums], Floats]] = {
    "alpha_nominal": coefficients.alpha_nominal,
    "alpha_ordinal": coefficients.alpha_ordinal,
    "alpha_interval": coefficients.alpha_interval,
    "alpha_ratio": coefficients.alpha_ratio,
    "gwet_AC1": coefficients.gwet_ac1,
    "gwet_AC2_linear": lambda s: coefficients.gwet_ac2(s, coefficients.linear_weights(s.values)),
    "gwet_AC2_quadratic": lambda s: coefficients.gwet_ac2(s, coefficients.quadratic_weights(s.values)),
    "gwet_AC2_ordinal": lambda s: coefficients.gwet_ac2(s, coefficients.ordinal_weights(s.values)),
    "brennan_prediger": coefficients.brennan_prediger_kappa,
    "pairwise_pct": coefficients.pairwise_agreement,
    "fleiss_kappa": coefficients.fleiss_kappa,
}
COHEN = {
    "cohen_kappa": coefficients.identity_weights,
    "cohen_linear": coefficients.linear_weights,
    "cohen_quadratic": coefficients.quadratic_weights,
}


def test_statistics_equal_the_published_values(shared_data: Path) -> None:
    tables = published_tables.load_tables(shared_data)
    assert len(tables) == 10
    for table in tables:
        total = rating_patterns.sum_pairs(published_tables.table_patterns(table)).total()
        names = table["expect"].keys() - COHEN.keys() - {"coincidence"}  # tested separately
        assert len(names) >= 9
        for name in names:
            assert float(STATISTICS[name](total)) == pytest.approx(table["expect"][name], abs=5.1e-7), (
                table["name"],
                name,
            )


def test_kappa_equals_the_published_values(shared_data: Path) -> None:
    checked = 0
    for table in published_tables.load_tables(shared_data):
        for name in COHEN.keys() & table["expect"].keys():
            counts = np.array(ast.literal_eval(table["note"].removeprefix("two-rater table ")), dtype=float)
            found = coefficients.cohen_kappa(counts, COHEN[name](table["values"]))
            assert float(found) == pytest.approx(table["expect"][name], abs=5.1e-7), (table["name"], name)
            checked += 1
    assert checked == 18


def test_coincidences_equal_the_published_matrix(shared_data: Path) -> None:
    table = published_tables.load_tables(shared_data)[0]
    total = rating_patterns.sum_pairs(published_tables.table_patterns(table)).total()
    assert total.coincidences == pytest.approx(np.array(table["expect"]["coincidence"]))
    assert float(total.coincidences.sum()) == pytest.approx(40)


def test_pairwise_is_not_the_mean_over_units(shared_data: Path) -> None:
    total = rating_patterns.sum_pairs(
        published_tables.table_patterns(published_tables.load_tables(shared_data)[0])
    ).total()
    mean = coefficients.observed_agreement(total, coefficients.identity_weights(total.values))
    assert (round(float(coefficients.pairwise_agreement(total)), 6), round(float(mean), 6)) == (0.781818, 0.818182)
