"""A new project protects itself: the evidence pauses bad annotators, and honest ones keep working. `test_repair` runs
one campaign over HTTP, judged by the same function."""

import pytest

from bench import protection

pytestmark = pytest.mark.fault


def test_bad_annotators_of_a_hundred_simulated_campaigns_are_paused_in_time() -> None:
    runs = [protection.run_campaign(seed) for seed in range(100)]
    assert sum(run.after.get(0, 999) <= protection.ALL_POSITIVE_BY for run in runs) >= 95
    assert sum(run.after.get(1, 999) <= protection.FINDS_FEW_BY for run in runs) >= 95
    assert sum(number > 1 for run in runs for number in run.after) <= 12  # of 600 honest colleagues


def test_honest_crowd_keeps_working() -> None:
    assert len(protection.run_crowd(2).after) <= 2  # of 100
