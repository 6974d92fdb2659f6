"""Movements of scores by edits, and the alarm of a version that is easier to fool."""

import numpy as np
import pytest

from prm.evaluation.canary_edits import CanaryEdit
from prm.evaluation.canary_report import ScoredEdit, compare_versions, report_edits

CORRUPT, CONFIDENCE = CanaryEdit.CORRUPT_NUMBER, CanaryEdit.CONFIDENCE


@pytest.mark.parametrize(
    ("edit", "before", "after", "fools"),
    [
        (CORRUPT, 0.9, 0.2, False),
        (CORRUPT, 0.9, 0.895, True),  # a tie
        (CORRUPT, 0.9, 0.95, True),
        (CONFIDENCE, 0.3, 0.9, True),
        (CONFIDENCE, 0.3, 0.305, False),
        (CONFIDENCE, 0.3, 0.1, False),
    ],
)
def test_edit_fools_if_the_score_moves_wrongly(edit: CanaryEdit, before: float, after: float, fools: bool) -> None:
    assert ScoredEdit(0, edit, 0, before, after).fools == fools


def make_edits(n: int, share: float, *, edit: CanaryEdit = CONFIDENCE, seed: int = 0) -> list[ScoredEdit]:
    dice = np.random.default_rng(seed)
    return [ScoredEdit(k, edit, k, 0.3, 0.9 if dice.random() < share else 0.3) for k in range(n)]


def test_report_has_rates_with_intervals() -> None:
    report = report_edits([*make_edits(40, 0.5), *(each._replace(edit=CORRUPT) for each in make_edits(10, 0))])
    assert report["n"] == 50
    (corrupt, confidence) = report["edits"]
    assert (corrupt["edit"], corrupt["falls"]["value"]) == ("corrupt_number", 0.0)
    assert 0.2 < confidence["rises"]["interval"][0] < confidence["rises"]["value"] < confidence["rises"]["interval"][1]
    assert report["groups"]["should_fall"]["value"] == 1.0
    assert report["groups"]["should_not_rise"]["value"] == confidence["rises"]["value"]


def test_version_that_is_easier_to_fool_raises_an_alarm() -> None:
    compared = compare_versions(make_edits(60, 0.6, seed=1), make_edits(60, 0.1, seed=2))
    assert compared["is_easier"]
    assert compared["groups"]["should_not_rise"]["is_easier"]
    assert compared["groups"]["should_fall"]["value"] is None
    assert compare_versions(make_edits(8, 1), make_edits(8, 0))["is_easier"]  # without any spread
    assert not compare_versions(make_edits(4, 1), make_edits(4, 0))["is_easier"]
    assert not compare_versions(make_edits(60, 0.1, seed=1), make_edits(60, 0.6, seed=2))["is_easier"]


def test_only_edits_that_both_scored_are_compared() -> None:
    compared = compare_versions(make_edits(60, 1), make_edits(20, 0))
    assert (compared["n"], compared["groups"]["should_not_rise"]["n_problems"]) == (20, 20)


def test_false_alarms_are_rare() -> None:
    """Two equal versions on 30 problems for each group."""
    alarms = 0
    for world in range(200):
        new, old = (
            [
                *make_edits(30, 0.4, seed=4 * world + version),
                *(
                    row._replace(number=100 + row.number, edit=CORRUPT)
                    for row in make_edits(30, 0.4, seed=4 * world + 2 + version)
                ),
            ]
            for version in range(2)
        )
        alarms += compare_versions(new, old)["is_easier"]
    assert alarms <= 18  # 5 % of 200, and the noise of 200 worlds
