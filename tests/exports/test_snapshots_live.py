"""Exports of live sessions as records of PRM800K's first phase: a strict parser reads them, and they come back."""

import datetime as dt
import json
from typing import Any

import pytest

from live import sessions
from live.sessions import LiveRating, TurnNotes
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.labeling.traces.test_load import load_lines
from tests.live import live_project
from tests.live.step_servers import StepServer, running_steps

pytestmark = pytest.mark.django_db
NOW = factories.NOW
TOP = ["labeler", "timestamp", "generation", "is_quality_control_question", "is_initial_screening_question"]


def parse_strictly(line: bytes) -> dict[str, Any]:
    """Read a line as the published parser of PRM800K does, with the rules of the first phase. Written without our
    own reader."""
    record: dict[str, Any] = json.loads(line)
    assert list(record) == [*TOP, "question", "label"]
    dt.datetime.strptime(record["timestamp"], "%Y-%m-%dT%H:%M:%S.%f")  # noqa: DTZ007  the format has no zone
    assert record["generation"] is None
    assert record["is_quality_control_question"] is False
    assert "pre_generated_steps" not in record["question"]
    assert list(record["label"]) == ["steps", "total_time", "finish_reason"]
    assert record["label"]["finish_reason"] in ("solution", "give_up", "found_error", "bad_problem")
    assert isinstance(record["label"]["total_time"], int)
    for step in record["label"]["steps"]:
        check_step(step)
    assert json.dumps(record).encode() == line
    return record


def check_step(step: dict[str, Any]) -> None:
    assert list(step) == ["completions", "human_completion", "chosen_completion"]
    for completion in step["completions"] or ():
        assert list(completion) == ["text", "rating", "flagged"]
        assert completion["rating"] in (-1, 0, 1, None)
        assert completion["flagged"] in (True, False)
    if step["chosen_completion"] is not None:
        assert step["completions"][step["chosen_completion"]]["rating"] == 1
    if step["human_completion"] is not None:
        human = {"rating": None, "source": "human", "flagged": False}
        assert step["human_completion"] == {"text": step["human_completion"]["text"], **human}


@pytest.mark.fault
def test_sessions_are_exported_as_phase_1_and_come_back() -> None:
    project = live_project.make_live_project(3, reserve_problem_share=0)
    rater = factories.make_rater(project)
    with running_steps(StepServer()) as address:
        live_project.make_policy(project, address)
        live_project.solve(live_project.begin(rater))
        live_project.give_up(live_project.begin(rater))
        session = live_project.begin(rater)
        turn = live_project.show(session)
        notes = TurnNotes(0, [LiveRating(index, -1, index == 0) for index in range(3)])
        sessions.write_step(session=session, notes=notes, text=" Mine: 1 + 1. ", ends_solution=False, by=None, now=NOW)
        live_project.solve(session)
    assert turn.shown is not None
    exported = read_file(build_snapshot(project, "prm800k"), "data/prm800k/train.jsonl")
    records = [parse_strictly(line) for line in exported.splitlines()]
    assert sorted(record["label"]["finish_reason"] for record in records) == ["give_up", "solution", "solution"]
    written = [step for record in records for step in record["label"]["steps"] if step["human_completion"]]
    assert [step["human_completion"]["text"] for step in written] == [" Mine: 1 + 1. "]
    given_up = next(record for record in records if record["label"]["finish_reason"] == "give_up")
    assert given_up["label"]["steps"] == [{"completions": None, "human_completion": None, "chosen_completion": None}]
    other = factories.make_project(reserve_problem_share=0)
    load_lines(other, *exported.splitlines())
    again = read_file(build_snapshot(other, "prm800k"), "data/prm800k/train.jsonl")
    assert sorted(again.splitlines()) == sorted(exported.splitlines())
