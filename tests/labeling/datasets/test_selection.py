"""Filters of a manifest."""

from typing import Any

import pytest

from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Manifest, Project, Settlement, Trace
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db


def freeze(project: Project, **filters: Any) -> Manifest:
    return manifest.freeze_manifest(
        project=project, filters=ManifestFilters(**filters), purpose="archive", now=factories.NOW, by=None
    )


def test_traces_are_selected_without_submissions() -> None:
    project = factories.make_project()
    factories.make_trace(project, is_right=True, outcome_by="file")
    (record,) = manifest.stream_records(freeze(project, unit="traces"))
    assert record.is_right
    assert record.submissions == []
    assert len(record.steps) == 3


def test_filters_by_raters_contested_state_and_domain() -> None:
    project = factories.make_project(reserve_problem_share=0.0)
    load_lines(
        project, *(prm.make_line(problem=problem) for problem in "ab"), prm.make_line(problem="a", labeler="ben")
    )
    assert freeze(project, min_raters=2).n_rows == 2
    contested = Trace.objects.get(project=project, problem__text="b")
    Settlement.objects.create(
        trace=contested, project=project, state="contested", changed_at=factories.NOW, is_due=False
    )
    for inclusion, n_rows in (("in", 3), ("out", 2), ("only", 1)):
        assert freeze(project, contested=inclusion).n_rows == n_rows
    assert freeze(project, domains=["geometry"]).n_rows == 0
    assert freeze(project, rater_kinds=["imported"], is_blind=True).n_rows == 3
