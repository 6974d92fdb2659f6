"""Ratings counted from compact rows equal those counted from records of the same rows."""

import pytest

from exports.shards import RatingSpread
from formats.rows import ExportRow
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Manifest
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db

SUBMISSIONS = [
    [prm.make_step("a", 1), prm.make_step("b", -1)],
    [prm.make_step("a", 1), prm.make_step("b", -1)],
    [prm.make_step("a", -1), prm.make_step("b", -1), prm.make_step("c", 0)],
    [
        prm.make_step("a", 1),
        prm.make_step("b", 1, "worse", "worst"),
        prm.make_step("c", 1),
    ],  # errors in alternatives only
    [prm.make_step("a", 0, "worse"), prm.make_step("b", -1, "worse"), prm.make_step("c", -1)],
    [prm.make_step("a", 1), prm.make_step("b", None), prm.make_step("c", -1)],
    [prm.make_step("a", None)],
    [
        prm.make_step("a"),
        {**prm.make_step("b", -1), "human_completion": {"text": "w", "rating": None, "source": "human"}},
    ],
]


def freeze(finish_reason: str) -> Manifest:
    project = factories.make_project()
    own = {"pre_generated_steps": ["a", "b", "c"], "finish_reason": finish_reason}
    load_lines(project, *(prm.make_line(steps=steps, **own) for steps in SUBMISSIONS), chunk=20)
    return manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )


@pytest.mark.parametrize("finish_reason", ["solution", "give_up"])
def test_both_ways_of_counting_agree(finish_reason: str) -> None:
    frozen = freeze(finish_reason)
    (chunk,) = manifest.read_row_chunks(frozen)
    assert {each.plain is None for each in chunk} == {True, False}
    counted, expected = RatingSpread(), RatingSpread()
    counted.count(chunk)
    expected.count(ExportRow(row.facts, None, row.record) for row in chunk)
    assert counted == expected
    without_error = "cut_off" if finish_reason == "give_up" else "none"
    assert counted.first_errors == {"1": 4, "0": 1, "2": 1, without_error: 2}
    assert counted.labels == {"-1": 12, "0": 2, "1": 7}
