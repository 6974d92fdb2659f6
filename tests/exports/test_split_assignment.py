"""Seats of problems, as snapshots of a growing project meet them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exports import snapshots, split_assignment
from exports.models import Snapshot, SplitAssignment
from exports.orders import SnapshotOrder
from exports.splits import split_position
from formats.normalization import digest_normalized
from jobs.runner import JobProgress
from labeling.models import Problem, Project, Source
from labeling.traces import undo_job
from tests import factories
from tests.exports.test_snapshots import content, do, make, run
from tests.exports.test_splits import text
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import bring_in

pytestmark = pytest.mark.django_db

LEFT, RIGHT, BRIDGE = text([1, 14]), text([27, 39]), text([14, 27])
STRANGERS = [f"What is {n} times {n * 7}, and why would anybody in room {n + 3} want to know?" for n in range(12)]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


def project_with(*problems: str) -> Project:
    project = factories.make_project(reserve_problem_share=0.0)
    bring_in(project, *(prm.make_line(problem=each) for each in problems))
    return project


def split(project: Project, **wanted: Any) -> tuple[Snapshot, dict[str, str]]:
    """A snapshot, and the split of each problem in it. `LEFT` sits at .91, `RIGHT` at .17."""
    made = make(project, "trl", test=wanted.pop("test", 0.375), **wanted)
    sides = {
        json.loads(line)["prompt"]: file.split
        for file in made.files.filter(format="trl")
        for line in content(made, file.name).splitlines()
    }
    return made, sides


def test_a_newcomer_between_two_splits_is_left_out_and_counted(tmp_path: Path) -> None:
    project = project_with(LEFT, RIGHT, *STRANGERS)
    _, before = split(project)
    assert before[LEFT] != before[RIGHT]
    bring_in(project, prm.make_line(problem=BRIDGE), prm.make_line(problem="A new one?"))
    made, after = split(project)
    assert {each: after[each] for each in before} == before
    assert set(after) - set(before) == {"A new one?"}
    assert made.manifest is not None
    assert made.manifest.left_out == {"astride": 1}
    assert json.loads(content(made, "manifest.json"))["left_out"] == {"astride": 1}
    assert (
        "| has a problem that is nearly like two that lie in different splits | 1 |"
        in content(made, "README.md").decode()
    )
    bring_in(project, prm.make_line(problem=text([14, 27, 33])))
    assert snapshots.rewrite_files(made, tmp_path / "again") == []
    assert BRIDGE in split(project, test=0.0, validation=0.95)[1], "shares that part nothing leave nothing out"


def test_what_is_taken_back_and_brought_in_again_sits_where_it_sat() -> None:
    """What came meanwhile has sat down beside it, though it was not there."""
    project = factories.make_project(reserve_problem_share=0.0)
    bring_in(project, prm.make_line(problem=LEFT), labels="none")
    run(split_assignment.assign_splits(project))
    run(undo_job.run_undo(Source.objects.get(project=project), by=None, checkpoint={}))
    assert not Problem.objects.exists()
    bring_in(project, prm.make_line(problem=text([1])))
    run(split_assignment.assign_splits(project))
    bring_in(project, prm.make_line(problem=LEFT))
    made, sides = split(project)
    assert sides == {LEFT: "train", text([1]): "train"}
    assert made.plan["places"] == {digest_normalized(text([1])): split_position(digest_normalized(LEFT))}


def test_whoever_decides_first_is_right() -> None:
    """Two snapshots decide at the same time, one of them before a problem came in that the other one saw."""
    project = project_with(LEFT, *STRANGERS)
    slow = split_assignment.assign_splits(project)
    chunk = last_of_first_round(slow)
    run(split_assignment.assign_splits(project))
    bring_in(project, prm.make_line(problem=BRIDGE))
    decided = list(SplitAssignment.objects.order_by("pk").values_list("digest", "low"))
    do(chunk)
    run(slow)
    assert list(SplitAssignment.objects.order_by("pk").values_list("digest", "low"))[:-1] == decided
    assert SplitAssignment.objects.latest("pk").low == SplitAssignment.objects.earliest("pk").low


def last_of_first_round(steps: Iterator[Any]) -> Any:
    return next(step for step in steps if not isinstance(step, JobProgress))


def test_what_comes_in_while_a_snapshot_looks_around_waits_for_the_next() -> None:
    project = project_with(*STRANGERS)
    made = snapshots.order_snapshot(
        project=project,
        name="x",
        purpose="archive",
        wanted=SnapshotOrder(formats=["trl"], test=0.3),
        by=None,
        now=factories.NOW,
        asks=False,
    )
    steps = [step for step in snapshots.prepare_snapshot(made, asks=False) if not isinstance(step, JobProgress)]
    freeze = steps[-1]
    for step in steps[:-1]:
        do(step)
    bring_in(project, prm.make_line(problem=BRIDGE))
    do(freeze)
    assert made.manifest is not None
    assert (made.manifest.n_rows, made.manifest.left_out) == (len(STRANGERS), {"late": 1})
