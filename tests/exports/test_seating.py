"""Seats of problems, as snapshots of a growing project meet them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exports import seating, snapshots
from exports.models import Seat, Snapshot
from exports.orders import Order
from exports.splits import place
from jobs.runner import Progress
from labeling.importing import undoing
from labeling.models import Problem, Project, Source
from labeling.texts.normal import digest
from tests import factories
from tests.exports.test_snapshots import content, do, make, run
from tests.exports.test_splits import text
from tests.labeling.importing import lines_of_prm800k as prm
from tests.labeling.importing.test_load import bring_in

pytestmark = pytest.mark.django_db

LEFT, RIGHT, BRIDGE = text([1, 14]), text([27, 39]), text([14, 27])
STRANGERS = [f"What is {n} times {n * 7}, and why would anybody in room {n + 3} want to know?" for n in range(12)]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


def project_with(*problems: str) -> Project:
    project = factories.make_project(reserve_problem_share=0.0)
    bring_in(project, *(prm.line(problem=each) for each in problems))
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
    bring_in(project, prm.line(problem=BRIDGE), prm.line(problem="A new one?"))
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
    bring_in(project, prm.line(problem=text([14, 27, 33])))
    assert snapshots.write_again(made, tmp_path / "again") == []
    assert BRIDGE in split(project, test=0.0, validation=0.95)[1], "shares that part nothing leave nothing out"


def test_what_is_taken_back_and_brought_in_again_sits_where_it_sat() -> None:
    """What came meanwhile has sat down beside it, though it was not there."""
    project = factories.make_project(reserve_problem_share=0.0)
    bring_in(project, prm.line(problem=LEFT), labels="none")
    run(seating.decide(project))
    run(undoing.undo(Source.objects.get(project=project), by=None, checkpoint={}))
    assert not Problem.objects.exists()
    bring_in(project, prm.line(problem=text([1])))
    run(seating.decide(project))
    bring_in(project, prm.line(problem=LEFT))
    made, sides = split(project)
    assert sides == {LEFT: "train", text([1]): "train"}
    assert made.plan["places"] == {digest(text([1])): place(digest(LEFT))}


def test_whoever_decides_first_is_right() -> None:
    """Two snapshots decide at the same time, one of them before a problem came in that the other one saw."""
    project = project_with(LEFT, *STRANGERS)
    slow = seating.decide(project)
    chunk = last_of_first_round(slow)
    run(seating.decide(project))
    bring_in(project, prm.line(problem=BRIDGE))
    decided = list(Seat.objects.order_by("pk").values_list("digest", "low"))
    do(chunk)
    run(slow)
    assert list(Seat.objects.order_by("pk").values_list("digest", "low"))[:-1] == decided
    assert Seat.objects.latest("pk").low == Seat.objects.earliest("pk").low


def last_of_first_round(steps: Iterator[Any]) -> Any:
    return next(step for step in steps if not isinstance(step, Progress))


def test_what_comes_in_while_a_snapshot_looks_around_waits_for_the_next() -> None:
    project = project_with(*STRANGERS)
    made = snapshots.order(
        project=project,
        name="x",
        purpose="archive",
        wanted=Order(formats=["trl"], test=0.3),
        by=None,
        now=factories.NOW,
        asks=False,
    )
    steps = [step for step in snapshots.prepare(made, asks=False) if not isinstance(step, Progress)]
    freeze = steps[-1]
    for step in steps[:-1]:
        do(step)
    bring_in(project, prm.line(problem=BRIDGE))
    do(freeze)
    assert made.manifest is not None
    assert (made.manifest.n_rows, made.manifest.left_out) == (len(STRANGERS), {"late": 1})
