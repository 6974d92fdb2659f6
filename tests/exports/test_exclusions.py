"""What a training snapshot leaves out, and why."""

import json
from pathlib import Path

import pytest

from exports import exclusions
from exports.exclusions import TextScan
from labeling import benchmarks
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Lane, Manifest, Problem, Project, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import bring_in

pytestmark = pytest.mark.django_db


def freeze(
    project: Project,
    *overrides: str,
    filters: ManifestFilters | None = None,
    texts: TextScan | None = None,
    is_training: bool = True,
) -> Manifest:
    filters = filters or ManifestFilters()
    rules = exclusions.build_rules(project, filters, is_training=is_training, overrides=overrides, texts=texts)
    return manifest.freeze_manifest(
        project=project, filters=filters, purpose="training", now=factories.NOW, by=None, exclusions=rules
    )


def make_project(*problems: str) -> Project:
    """Return a project without held-out problems, with one labeled trace of each problem."""
    project = factories.make_project(reserve_problem_share=0.0)
    bring_in(project, *(prm.make_line(problem=problem) for problem in problems))
    return project


def find_trace(project: Project, problem: str) -> Trace:
    return Trace.objects.get(project=project, problem__text=problem)


def copy_digest(project: Project, problem: str, other: Project) -> None:
    """Give the problems of another project the normalized text of this one."""
    digest = find_trace(project, problem).problem.normal_digest
    Problem.objects.filter(project=other).update(normal_digest=digest)


def test_every_reason_has_a_label() -> None:
    assert {*exclusions.OVERRIDABLE_EXCLUSIONS, *exclusions.ARCHIVE_EXCLUSIONS} == set(exclusions.EXCLUSION_LABELS)


def test_training_leaves_out_gold_screening_and_training_traces() -> None:
    project = make_project("a", "b", "c", "d")
    for problem, use in (("a", GoldUse.HIDDEN), ("b", GoldUse.SCREENING), ("c", GoldUse.TRAINING)):
        trace = find_trace(project, problem)
        make_gold(trace=trace, use=use, accepted_first_errors=[1], by=None, now=factories.NOW)
    frozen = freeze(project)
    assert frozen.n_rows == 1
    assert frozen.left_out == {"gold": 1, "screening": 1, "training": 1}
    assert freeze(project, "gold", "screening").left_out == {"training": 1}
    assert freeze(project, is_training=False).n_rows == 4
    assert freeze(project, filters=ManifestFilters(gold="only"), is_training=False).n_rows == 3
    assert freeze(project, filters=ManifestFilters(gold="out"), is_training=False).n_rows == 1


def test_training_leaves_out_every_trace_with_the_problem_of_a_canary() -> None:
    """A canary is an edited trace, or the original of one. Other solutions of its problem are left out too."""
    project, other = make_project("What is 1 + 1?", "b", "c"), factories.make_project()
    bring_in(project, prm.make_line(problem="What is 1 + 1?", pre_generated_steps=["2"], labeler="ben"))
    edited = factories.make_trace(other)
    copy_digest(project, "b", other)
    canary = Trace.objects.filter(project=project, problem__text="What is 1 + 1?").earliest("pk")
    for trace in (canary, edited):
        make_gold(trace=trace, use=GoldUse.CANARY, accepted_first_errors=[None], by=None, now=factories.NOW)
    assert freeze(project).left_out == {"canary": 3}
    assert freeze(project, "canary").n_rows == 4


def test_training_leaves_out_held_out_problems_of_any_project() -> None:
    project, other = make_project("What is 1 + 1?", "a", "b"), factories.make_project()
    factories.make_problem(other, "what is 1+1", is_reserve=True)
    copy_digest(project, "What is 1 + 1?", other)
    lane = Lane.objects.create(project=project, arm="reserve")
    Assignment.objects.filter(trace=find_trace(project, "a")).update(lane=lane)
    assert freeze(project).left_out == {"reserve": 2}


def test_training_leaves_out_problems_on_shipped_and_imported_benchmark_lists(shared_data: Path) -> None:
    public = json.loads((shared_data / "processbench/math.json").read_text())[0]["problem"]
    project = make_project(public, "ours", "free")
    source = factories.make_source(factories.make_project(), name="exam.jsonl")
    digest = find_trace(project, "ours").problem.normal_digest
    benchmarks.register_problems(source=source, normal_digests=[digest], now=factories.NOW)
    assert freeze(project).left_out == {"benchmark": 2}
    assert freeze(project, "benchmark:exam.jsonl").left_out == {"benchmark": 1}
    assert freeze(project, "benchmark").n_rows == 3


def test_scanned_problems_and_traces_are_left_out() -> None:
    project = make_project("a", "b", "c")
    texts = TextScan(
        overlapping=[find_trace(project, "a").problem_id], duplicates=[find_trace(project, name).pk for name in "ab"]
    )
    frozen = freeze(project, texts=texts)
    assert frozen.n_rows == 1
    assert frozen.left_out == {"overlap": 1, "duplicate": 1}
