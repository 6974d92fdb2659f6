"""What a training set leaves out, and why."""

import json
from pathlib import Path
from typing import Any

import pytest

from labeling import benchmarks
from labeling.datasets import manifest
from labeling.datasets.selection import Exclusions, ManifestFilters
from labeling.models import Assignment, Lane, Manifest, Problem, Project, Settlement, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import bring_in

pytestmark = pytest.mark.django_db


def train(project: Project, *, filters: ManifestFilters | None = None, **excluded: Any) -> Manifest:
    return manifest.freeze_manifest(
        project=project,
        filters=filters or ManifestFilters(),
        purpose="training",
        now=factories.NOW,
        by=None,
        excluded=Exclusions(**excluded),
    )


def labelled(*problems: str) -> Project:
    """A project without a reserve, with one labelled trace of each problem."""
    project = factories.make_project(reserve_problem_share=0.0)
    bring_in(project, *(prm.make_line(problem=problem) for problem in problems))
    return project


def trace(project: Project, problem: str) -> Trace:
    return Trace.objects.get(project=project, problem__text=problem)


def test_training_leaves_out_what_judges_raters() -> None:
    project = labelled("a", "b", "c", "d")
    for problem, use in (("a", GoldUse.HIDDEN), ("b", GoldUse.SCREENING), ("c", GoldUse.TRAINING)):
        make_gold(trace=trace(project, problem), use=use, accepted_first_errors=[1], by=None, now=factories.NOW)
    frozen = train(project)
    assert (frozen.n_rows, frozen.left_out) == (1, {"gold": 1, "screening": 1, "training": 1})
    assert train(project, taken_in=["gold", "screening"]).left_out == {"training": 1}
    assert train(project, is_training=False).n_rows == 4
    assert train(project, filters=ManifestFilters(gold="only"), is_training=False).n_rows == 3
    assert train(project, filters=ManifestFilters(gold="out"), is_training=False).n_rows == 1


def test_training_leaves_out_canaries_and_whatever_has_their_problem() -> None:
    """A canary is an edit of a trace, or a trace that was edited: neither it nor another solution is learnt from."""
    project, other = labelled("What is 1 + 1?", "b", "c"), factories.make_project()
    bring_in(project, prm.make_line(problem="What is 1 + 1?", pre_generated_steps=["2"], labeler="ben"))
    edited = factories.make_trace(other)
    Problem.objects.filter(project=other).update(normal_digest=trace(project, "b").problem.normal_digest)
    canary = Trace.objects.filter(project=project, problem__text="What is 1 + 1?").earliest("pk")
    for each in (canary, edited):
        make_gold(trace=each, use=GoldUse.CANARY, accepted_first_errors=[None], by=None, now=factories.NOW)
    assert train(project).left_out == {"canary": 3}
    assert train(project, taken_in=["canary"]).n_rows == 4


def test_training_leaves_out_reserves_of_any_project() -> None:
    project, other = labelled("What is 1 + 1?", "a", "b"), factories.make_project()
    factories.make_problem(other, "what is 1+1", is_reserve=True)
    Problem.objects.filter(project=other).update(normal_digest=trace(project, "What is 1 + 1?").problem.normal_digest)
    lane = Lane.objects.create(project=project, arm="reserve")
    Assignment.objects.filter(trace=trace(project, "a")).update(lane=lane)
    assert train(project).left_out == {"reserve": 2}


def test_training_leaves_out_benchmarks(shared_data: Path) -> None:
    """One problem stands on the list that ships with the code, one on a list that a lead brought in."""
    public = json.loads((shared_data / "processbench/math.json").read_text())[0]["problem"]
    project = labelled(public, "ours", "free")
    source = factories.make_source(factories.make_project(), name="exam.jsonl")
    benchmarks.register_problems(
        source=source, normal_digests=[trace(project, "ours").problem.normal_digest], now=factories.NOW
    )
    assert train(project).left_out == {"benchmark": 2}
    assert train(project, taken_in=["benchmark:exam.jsonl"]).left_out == {"benchmark": 1}
    assert train(project, taken_in=["benchmark"]).n_rows == 3


def test_training_leaves_out_what_was_found_by_reading() -> None:
    project = labelled("a", "b", "c")
    frozen = train(
        project, overlapping=[trace(project, "a").problem_id], duplicates=[trace(project, n).pk for n in "ab"]
    )
    assert (frozen.n_rows, frozen.left_out) == (1, {"overlap": 1, "duplicate": 1})


def test_traces_are_chosen_without_anybody_having_rated_them() -> None:
    project = factories.make_project()
    factories.make_trace(project, is_right=True, outcome_by="file")
    (found,) = manifest.stream_records(train(project, filters=ManifestFilters(unit="traces")))
    assert (found.is_right, found.submissions, len(found.steps)) == (True, [], 3)


def test_filters_count_raters_and_know_what_is_contested() -> None:
    project = labelled("a", "b")
    bring_in(project, prm.make_line(problem="a", labeler="ben"))
    assert train(project, filters=ManifestFilters(min_raters=2)).n_rows == 2
    Settlement.objects.create(
        trace=trace(project, "b"), project=project, state="contested", changed_at=factories.NOW, is_due=False
    )
    assert [train(project, filters=ManifestFilters(contested=side)).n_rows for side in ("in", "out", "only")] == [
        3,
        2,
        1,
    ]
    assert train(project, filters=ManifestFilters(domains=["geometry"])).n_rows == 0
    assert train(project, filters=ManifestFilters(rater_kinds=["imported"], is_blind=True)).n_rows == 3
