"""Ratings counted from what was read, against the database's own count of the same rows."""

import pytest

from exports.rating_spread import RatingSpread, _query_counts
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Manifest
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import bring_in

pytestmark = pytest.mark.django_db

READINGS = [
    [prm.make_step("a", 1), prm.make_step("b", -1)],
    [prm.make_step("a", 1), prm.make_step("b", -1)],
    [prm.make_step("a", -1), prm.make_step("b", -1), prm.make_step("c", 0)],
    [prm.make_step("a", 1), prm.make_step("b", 1, "worse", "worst"), prm.make_step("c", 1)],  # errors of others only
    [prm.make_step("a", 0, "worse"), prm.make_step("b", -1, "worse"), prm.make_step("c", -1)],
    [prm.make_step("a", 1), prm.make_step("b", None), prm.make_step("c", -1)],
    [prm.make_step("a", None)],
    [
        prm.make_step("a"),
        {**prm.make_step("b", -1), "human_completion": {"text": "w", "rating": None, "source": "human"}},
    ],
]


def frozen_of(finish_reason: str) -> Manifest:
    project = factories.make_project()
    own = {"pre_generated_steps": ["a", "b", "c"], "finish_reason": finish_reason}
    bring_in(project, *(prm.make_line(steps=steps, **own) for steps in READINGS), chunk=20)
    return manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )


@pytest.mark.parametrize("finish_reason", ["solution", "give_up"])
def test_what_is_counted_while_reading_is_what_the_database_counts(finish_reason: str) -> None:
    frozen = frozen_of(finish_reason)
    (chunk,) = manifest.read_row_chunks(frozen)
    assert {each.plain is None for each in chunk} == {True, False}
    found, known = RatingSpread(), RatingSpread()
    found.count(frozen, chunk)
    for place, was_cut_off, n, *ratings in _query_counts(frozen, range(len(READINGS))):
        known._add(place, was_cut_off, n, ratings)
    assert found == known
    without = "cut_off" if finish_reason == "give_up" else "none"
    assert found.first_errors == {"1": 4, "0": 1, "2": 1, without: 2}
    assert found.labels == {"-1": 12, "0": 2, "1": 7}
