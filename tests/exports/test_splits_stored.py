"""Stored split assignments in snapshots of a growing project."""

import json
from pathlib import Path

import pytest

from exports import orders, snapshots, splits
from exports.models import Snapshot, SplitAssignment
from exports.splits import split_position
from formats.near_duplicates import digest_normalized
from jobs.runner import JobProgress
from labeling.models import Problem, Project, Source
from labeling.traces import undo
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, order_snapshot, read_file, run_chunk, run_chunks
from tests.exports.test_splits import make_text
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db

# `LEFT` is at position .91, `RIGHT` at .17; `BRIDGE` is similar to both.
LEFT, RIGHT, BRIDGE = make_text([1, 14]), make_text([27, 39]), make_text([14, 27])
UNRELATED = [f"What is {n} times {n * 7}, and why would anybody in room {n + 3} want to know?" for n in range(12)]


def make_project(*problems: str) -> Project:
    project = factories.make_project(reserve_problem_share=0.0)
    load_lines(project, *(prm.make_line(problem=each) for each in problems))
    return project


def split_project(project: Project, *, test: float = 0.375, validation: float = 0.0) -> tuple[Snapshot, dict[str, str]]:
    """Return a snapshot, and the split of each problem in it."""
    snapshot = build_snapshot(project, "trl", test=test, validation=validation)
    split = {
        json.loads(line)["prompt"]: file.split
        for file in snapshot.files.filter(format="trl")
        for line in read_file(snapshot, file.name).splitlines()
    }
    return snapshot, split


def assign_splits(project: Project) -> None:
    run_chunks(splits.assign_splits(project))


@pytest.mark.fault
def test_problem_between_two_splits_is_left_out_and_counted(tmp_path: Path) -> None:
    project = make_project(LEFT, RIGHT, *UNRELATED)
    _, before = split_project(project)
    assert before[LEFT] != before[RIGHT]
    load_lines(project, prm.make_line(problem=BRIDGE), prm.make_line(problem="A new one?"))
    snapshot, after = split_project(project)
    assert {each: after[each] for each in before} == before
    assert set(after) - set(before) == {"A new one?"}
    assert snapshot.manifest is not None
    assert snapshot.manifest.left_out == {"astride": 1}
    assert json.loads(read_file(snapshot, "manifest.json"))["left_out"] == {"astride": 1}
    assert f"| {orders.EXCLUSION_LABELS['astride']} | 1 |" in read_file(snapshot, "README.md").decode()
    load_lines(project, prm.make_line(problem=make_text([14, 27, 33])))
    assert snapshots.rewrite_files(snapshot, tmp_path / "again") == []
    assert BRIDGE in split_project(project, test=0.0, validation=0.95)[1], "these shares cut through no interval"


def test_undone_and_repeated_import_keeps_its_assignments() -> None:
    """A problem imported in between follows the undone one."""
    project = factories.make_project(reserve_problem_share=0.0)
    load_lines(project, prm.make_line(problem=LEFT), labels="none")
    assign_splits(project)
    run_chunks(undo.run_undo(Source.objects.get(project=project), by=None, checkpoint={}))
    assert not Problem.objects.exists()
    load_lines(project, prm.make_line(problem=make_text([1])))
    assign_splits(project)
    load_lines(project, prm.make_line(problem=LEFT))
    snapshot, split = split_project(project)
    assert split == {LEFT: "train", make_text([1]): "train"}
    assert snapshot.plan["places"] == {digest_normalized(make_text([1])): split_position(digest_normalized(LEFT))}


def test_first_of_two_concurrent_assignments_wins() -> None:
    """Two snapshots assign splits at the same time; only one of them has seen the last problem."""
    project = make_project(LEFT, *UNRELATED)
    slow = splits.assign_splits(project)
    save_chunk = next(step for step in slow if not isinstance(step, JobProgress))
    assign_splits(project)
    load_lines(project, prm.make_line(problem=BRIDGE))
    assigned = list(SplitAssignment.objects.order_by("pk").values_list("digest", "low"))
    run_chunk(save_chunk)
    run_chunks(slow)
    assert list(SplitAssignment.objects.order_by("pk").values_list("digest", "low"))[:-1] == assigned
    assert SplitAssignment.objects.latest("pk").low == SplitAssignment.objects.earliest("pk").low


def test_problem_imported_during_the_scan_is_late() -> None:
    project = make_project(*UNRELATED)
    snapshot = order_snapshot(project, "trl", test=0.3)
    steps = [step for step in snapshots.prepare_snapshot(snapshot, enqueue=False) if not isinstance(step, JobProgress)]
    *assignments, freeze = steps
    for step in assignments:
        run_chunk(step)
    load_lines(project, prm.make_line(problem=BRIDGE))
    run_chunk(freeze)
    assert snapshot.manifest is not None
    assert snapshot.manifest.n_rows == len(UNRELATED)
    assert snapshot.manifest.left_out == {"late": 1}
