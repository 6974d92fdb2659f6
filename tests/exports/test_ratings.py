"""Ratings counted from what was read, against the database's own count of the same rows."""

import pytest

from exports.ratings import Spread, _looked_up
from labeling import manifest
from labeling.manifest import Filters
from labeling.models import Manifest
from tests import factories
from tests.labeling.importing import lines_of_prm800k as prm
from tests.labeling.importing.test_load import bring_in

pytestmark = pytest.mark.django_db

READINGS = [
    [prm.step("a", 1), prm.step("b", -1)],
    [prm.step("a", 1), prm.step("b", -1)],
    [prm.step("a", -1), prm.step("b", -1), prm.step("c", 0)],
    [prm.step("a", 1), prm.step("b", 1, "worse", "worst"), prm.step("c", 1)],  # errors of others only
    [prm.step("a", 0, "worse"), prm.step("b", -1, "worse"), prm.step("c", -1)],
    [prm.step("a", 1), prm.step("b", None), prm.step("c", -1)],
    [prm.step("a", None)],
    [prm.step("a"), {**prm.step("b", -1), "human_completion": {"text": "w", "rating": None, "source": "human"}}],
]


def frozen_of(finish_reason: str) -> Manifest:
    project = factories.make_project()
    own = {"pre_generated_steps": ["a", "b", "c"], "finish_reason": finish_reason}
    bring_in(project, *(prm.line(steps=steps, **own) for steps in READINGS), chunk=20)
    return manifest.freeze(project=project, filters=Filters(), purpose="archive", now=factories.NOW, by=None)


@pytest.mark.parametrize("finish_reason", ["solution", "give_up"])
def test_what_is_counted_while_reading_is_what_the_database_counts(finish_reason: str) -> None:
    frozen = frozen_of(finish_reason)
    (chunk,) = manifest.readings(frozen)
    assert {each.plain is None for each in chunk} == {True, False}
    found, known = Spread(), Spread()
    found.count(frozen, chunk)
    for place, was_cut_off, n, *ratings in _looked_up(frozen, range(len(READINGS))):
        known._add(place, was_cut_off, n, ratings)
    assert found == known
    without = "cut_off" if finish_reason == "give_up" else "none"
    assert found.first_errors == {"1": 4, "0": 1, "2": 1, without: 2}
    assert found.labels == {"-1": 12, "0": 2, "1": 7}
