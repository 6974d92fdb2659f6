"""Licenses: bounds of precision, and promises kept in simulated worlds."""

import numpy as np
import pytest
from scipy import stats

from bench import machine_raters
from stats import (
    machine_licenses,
)
from stats.estimates import Reason
from stats.machine_licenses import StratumEvidence


def evidence(agrees: list[bool], n_gold: int, n_shared: int) -> StratumEvidence:
    n = len(agrees)
    is_shared = np.arange(n_gold) < n_shared
    return StratumEvidence(np.array(agrees), np.arange(n), np.ones(n), is_shared, np.arange(n_gold))


def test_license_subtracts_the_blind_spot_that_people_share() -> None:
    sound, blind = evidence([True] * 400, 100, 0), evidence([True] * 400, 100, 12)
    found = machine_licenses.bound_strata({"sound": sound, "blind": blind}, promised=0.9)
    assert [found[key].keeps_promise for key in ("sound", "blind")] == [True, False]
    assert found["blind"].reason == Reason.BELOW_PROMISE
    thin = {1: evidence([True] * 20, 100, 0), 2: evidence([True] * 99, 5, 0)}
    few = machine_licenses.bound_strata(thin, promised=0.5)
    assert [few[key].reason for key in (1, 2)] == [Reason.FEW_BLIND, Reason.FEW_GOLD]


def test_effective_cases_are_the_problems_where_all_their_traces_agree() -> None:
    hits, problems = np.repeat(np.arange(50) < 40, 4), np.repeat(np.arange(50), 4)
    n = machine_licenses.count_effective_cases(hits, problems, np.ones(200))
    assert n == pytest.approx(49)  # 50 problems, less one for the mean
    bound = machine_licenses.bound_share(hits, problems, np.ones(200), tail=0.025, is_upper=False)
    assert bound == pytest.approx(stats.beta.ppf(0.025, 0.8 * 49, 0.2 * 49 + 1))


@pytest.mark.fault
def test_licensed_strata_deliver_in_95_of_100_worlds() -> None:
    found = machine_raters.measure_licenses(worlds=200)
    assert found["delivers"] >= 0.95
    assert found["delivers_hostile"] >= 0.95
    assert found["licensed_per_world"] > found["worthy_per_world"] / 2
