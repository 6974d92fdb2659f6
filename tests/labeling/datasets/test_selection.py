"""Filters of a manifest."""

from typing import Any

import pytest

from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Manifest, Project, SetAside, Settlement, Trace
from labeling.quality import resolve
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.quality import submitted_work
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db


def freeze(project: Project, **filters: Any) -> Manifest:
    return manifest.freeze_manifest(
        project=project, filters=ManifestFilters(**filters), purpose="archive", now=factories.NOW, by=None
    )


def test_traces_are_selected_without_submissions() -> None:
    project = factories.make_project()
    factories.make_trace(project, is_right=True, outcome_by="file")
    ((row,),) = manifest.read_row_chunks(freeze(project, unit="traces"))
    assert row.record.is_right
    assert row.record.submissions == []
    assert len(row.record.steps) == 3


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


def test_labels_set_aside_and_raters_left_out_are_counted_with_their_reason() -> None:
    project = factories.make_project()
    trace, other = factories.make_trace(project), factories.make_trace(project)
    good, bad = factories.make_rater(project), factories.make_rater(project)
    for each in (trace, other):
        submitted_work.submit_trace(good, each, [1, -1])
    aside = submitted_work.submit_trace(bad, trace, [1, 1, 1])
    reason = {"reason": "x", "made_at": factories.NOW, "until_at": factories.NOW}
    Assignment.objects.filter(pk=aside.pk).update(
        set_aside=SetAside.objects.create(project=project, rater=bad, **reason)
    )
    made = freeze(project)
    assert (made.n_rows, made.left_out) == (2, {"set_aside": 1})
    assert (freeze(project, set_aside="in").n_rows, freeze(project, set_aside="only").n_rows) == (3, 1)
    made = freeze(project, without_labelers=[good.labeler])
    assert (made.n_rows, made.left_out) == (0, {"set_aside": 1, "rater": 2})
    assert freeze(project, min_raters=2).n_rows == 0


def test_consensus_without_a_rater_leaves_out_the_traces_of_their_votes_if_nothing_replaces_it() -> None:
    project = factories.make_project()
    one, two, three = submitted_work.make_raters(project, 3)
    for pair in ((one, two), (two, three)):
        trace = factories.make_trace(project)
        for rater in pair:
            submitted_work.submit_trace(rater, trace, [1, -1])
    resolve.resolve_due_traces(now=factories.NOW)
    made = freeze(project, is_consensus=True, without_labelers=[one.labeler])
    assert (made.n_rows, made.left_out) == (2, {"rater": 2})
    made = freeze(project, is_consensus=True, labelers=[one.labeler, two.labeler])
    assert (made.n_rows, made.left_out) == (2, {"rater": 1})
