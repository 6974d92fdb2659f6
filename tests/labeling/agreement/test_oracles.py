"""Every statistic on the ten published tables, to six decimals."""

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from labeling.agreement import alpha, brennan_prediger, cohen, fleiss, gwet, pairwise, sums, weights
from labeling.agreement.arrays import Floats
from labeling.agreement.sums import PairSums
from tests.labeling.agreement import oracles

STATISTICS: dict[str, Callable[[PairSums], Floats]] = {
    "alpha_nominal": alpha.nominal,
    "alpha_ordinal": alpha.ordinal,
    "alpha_interval": alpha.interval,
    "alpha_ratio": alpha.ratio,
    "gwet_AC1": gwet.ac1,
    "gwet_AC2_linear": lambda s: gwet.ac2(s, weights.linear(s.values)),
    "gwet_AC2_quadratic": lambda s: gwet.ac2(s, weights.quadratic(s.values)),
    "gwet_AC2_ordinal": lambda s: gwet.ac2(s, weights.ordinal(s.values)),
    "brennan_prediger": brennan_prediger.kappa,
    "pairwise_pct": pairwise.agreement,
    "fleiss_kappa": fleiss.kappa,
}
COHEN = {"cohen_kappa": weights.identity, "cohen_linear": weights.linear, "cohen_quadratic": weights.quadratic}


def test_statistics_equal_the_published_values(shared_data: Path) -> None:
    tables = oracles.tables(shared_data)
    assert len(tables) == 10
    for table in tables:
        total = sums.of_patterns(oracles.patterns_of(table)).total()
        asked = table["expect"].keys() - COHEN.keys() - {"coincidence"}  # those two have tests of their own
        assert len(asked) >= 9
        for name in asked:
            assert float(STATISTICS[name](total)) == pytest.approx(table["expect"][name], abs=5.1e-7), (
                table["name"],
                name,
            )


def test_kappa_equals_the_published_values(shared_data: Path) -> None:
    checked = 0
    for table in oracles.tables(shared_data):
        for name in COHEN.keys() & table["expect"].keys():
            counts = np.array(ast.literal_eval(table["note"].removeprefix("two-rater table ")), dtype=float)
            found = cohen.kappa(counts, COHEN[name](table["values"]))
            assert float(found) == pytest.approx(table["expect"][name], abs=5.1e-7), (table["name"], name)
            checked += 1
    assert checked == 18


def test_coincidences_equal_the_published_matrix(shared_data: Path) -> None:
    table = oracles.tables(shared_data)[0]
    total = sums.of_patterns(oracles.patterns_of(table)).total()
    assert total.coincidences == pytest.approx(np.array(table["expect"]["coincidence"]))
    assert float(total.coincidences.sum()) == pytest.approx(40)


def test_pairwise_is_not_the_mean_over_units(shared_data: Path) -> None:
    total = sums.of_patterns(oracles.patterns_of(oracles.tables(shared_data)[0])).total()
    mean = gwet.observed_agreement(total, weights.identity(total.values))
    assert (round(float(pairwise.agreement(total)), 6), round(float(mean), 6)) == (0.781818, 0.818182)
