"""AgentRewardBench: verdicts of annotators come back as they were."""

import io
import json
from typing import Any

import msgspec
import pytest

from formats import agent_reward_bench
from formats.examples import RowTally
from formats.records import BadLine, SubmissionRecord, TraceRecord
from tests.formats.export_rows import make_example, write_rows

PLACE = {"benchmark": "webarena", "task_id": "webarena.7", "model_name": "GenericAgent-m", "exp_name": "e"}
COLUMNS = ("trajectory_success", "trajectory_side_effect", "trajectory_optimality", "trajectory_looping")
ROWS = [
    {"annotator_name": name, **PLACE, **dict(zip(COLUMNS, given, strict=True))}
    for name, *given in (
        ("A", "Successful", "No", "4. Completely Optimal", "No"),
        ("B", "Unsuccessful", "Yes", "1. Complete Failure", "Yes"),
        ("C", "Unsure", "Unsure", "2. Suboptimal", ""),
    )
]
TRAJECTORY = {
    "benchmark": "webarena",
    "goal": "Buy it.",
    "agent": "GenericAgent-m",
    "model": "m",
    "experiment": "e",
    "seed": 7,
    "steps": [
        {"num": 0, "url": "http://x", "axtree_pruned": "Root", "reasoning": "Look.", "action": "click('1')"},
        {"num": 1, "url": None, "axtree": "Root", "last_action_error": "None", "reasoning": None, "action": None},
    ],
}


def read(**more: Any) -> TraceRecord | BadLine:
    (made,) = agent_reward_bench.read(io.BytesIO(json.dumps({**TRAJECTORY, **more}).encode()))
    return made


def read_one(**more: Any) -> TraceRecord:
    made = read(**more)
    assert isinstance(made, TraceRecord), made
    return made


def write(record: TraceRecord, submission: SubmissionRecord) -> list[dict[str, Any]]:
    one = msgspec.structs.replace(record, submissions=[submission])
    return write_rows("agent_reward_bench", make_example(one))


def test_annotations_come_back() -> None:
    made = read_one(annotations=ROWS)
    assert [row for submission in made.submissions for row in write(made, submission)] == ROWS
    assert made.submissions[1].answers == {
        "final_label": "-1",
        "side_effect": "yes",
        "optimality": "1",
        "looping": "yes",
    }
    assert made.submissions[2].answers == {"final_label": "Unsure", "side_effect": "Unsure", "optimality": "2"}


def test_steps_have_the_page_before_the_action() -> None:
    made = read_one()
    assert [(step.kind, step.is_rateable, step.options[0].text) for step in made.steps] == [
        ("observation", False, "http://x\nRoot"),
        ("action", True, "Look.\nclick('1')"),
        ("observation", False, "None\nRoot"),
        ("reasoning", True, ""),
    ]
    assert made.metadata == {"benchmark": "webarena", "model_name": "GenericAgent-m", "exp_name": "e"}


def test_reasoning_is_split_inside_its_step() -> None:
    step = {"reasoning": "Look.\nThink.", "action": "click('1')"}
    content = json.dumps({**TRAJECTORY, "steps": [step]}).encode()
    (made,) = agent_reward_bench.read(io.BytesIO(content), segmenter="lines 2")
    assert isinstance(made, TraceRecord)
    assert [(each.kind, each.source_position, each.options[0].text) for each in made.steps] == [
        ("reasoning", 0, "Look."),
        ("reasoning", 0, "Think."),
        ("action", 0, "click('1')"),
    ]
    assert made.provenance is not None
    assert made.provenance.segmenter == "agent turns 1, lines 2"


def test_submission_without_a_verdict_is_left_out() -> None:
    tally = RowTally()
    made = read_one()
    made.submissions = [SubmissionRecord([], labeler="r")]
    assert write_rows("agent_reward_bench", make_example(made), tally=tally) == []
    assert tally.left_out == {agent_reward_bench.NO_VERDICT: 1}


@pytest.mark.parametrize("row", [{"task_id": "webarena.8"}, {"note": "x"}])
def test_odd_annotations_are_refused(row: dict[str, str]) -> None:
    assert isinstance(read(annotations=[ROWS[0], {**ROWS[1], **row}]), BadLine)
