"""Every statistic on the ten published tables, to six decimals."""

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stats import ac1, alpha, kappa, rating_patterns, step_agreement, weights
from stats.arrays import Floats
from stats.rating_patterns import PairSums
from tests.stats import published_tables

STATISTICS: dict[str, Callable[[PairSums], Floats]] = {
    "alpha_nominal": alpha.nominal,
    "alpha_ordinal": alpha.ordinal,
    "alpha_interval": alpha.interval,
    "alpha_ratio": alpha.ratio,
    "gwet_AC1": ac1.gwet_ac1,
    "gwet_AC2_linear": lambda s: ac1.gwet_ac2(s, weights.linear(s.values)),
    "gwet_AC2_quadratic": lambda s: ac1.gwet_ac2(s, weights.quadratic(s.values)),
    "gwet_AC2_ordinal": lambda s: ac1.gwet_ac2(s, weights.ordinal(s.values)),
    "brennan_prediger": kappa.brennan_prediger_kappa,
    "pairwise_pct": step_agreement.pairwise_agreement,
    "fleiss_kappa": kappa.fleiss_kappa,
}
COHEN = {"cohen_kappa": weights.identity, "cohen_linear": weights.linear, "cohen_quadratic": weights.quadratic}


def test_statistics_equal_the_published_values(shared_data: Path) -> None:
    tables = published_tables.load_tables(shared_data)
    assert len(tables) == 10
    for table in tables:
        total = rating_patterns.sum_pairs(published_tables.table_patterns(table)).total()
        asked = table["expect"].keys() - COHEN.keys() - {"coincidence"}  # those two have tests of their own
        assert len(asked) >= 9
        for name in asked:
            assert float(STATISTICS[name](total)) == pytest.approx(table["expect"][name], abs=5.1e-7), (
                table["name"],
                name,
            )


def test_kappa_equals_the_published_values(shared_data: Path) -> None:
    checked = 0
    for table in published_tables.load_tables(shared_data):
        for name in COHEN.keys() & table["expect"].keys():
            counts = np.array(ast.literal_eval(table["note"].removeprefix("two-rater table ")), dtype=float)
            found = kappa.cohen_kappa(counts, COHEN[name](table["values"]))
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
    mean = ac1.observed_agreement(total, weights.identity(total.values))
    assert (round(float(step_agreement.pairwise_agreement(total)), 6), round(float(mean), 6)) == (0.781818, 0.818182)
