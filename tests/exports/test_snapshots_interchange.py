"""Records of benchmarks that are imported, stored and exported again have the same labels."""

import io
import json
from typing import Any

import pytest

from formats import catalog
from labeling.models import FirstErrorReport, Project, Settlement
from labeling.models.trace import ImportedLabelKind
from labeling.traces import load
from labeling.traces.load import LoadState
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.formats.test_agent_reward_bench import ROWS, TRAJECTORY
from tests.formats.test_native_trace_answers import CHAT
from tests.formats.test_trail import LABELS, TRACE
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db


def load_record(format: str, record: object) -> Project:
    project = factories.make_project(reserve_problem_share=0.0)
    state = LoadState(project=project, source=factories.make_source(project), labels=ImportedLabelKind.JUDGMENTS)
    records = list(catalog.read_traces(io.BytesIO(json.dumps(record).encode()), format=format))
    load.load_chunk(state=state, records=records, now=factories.NOW)
    return project


def export_rows(project: Project, format: str) -> list[dict[str, Any]]:
    snapshot = build_snapshot(project, format, has_labeler_names=True)
    return [json.loads(line) for line in read_file(snapshot, f"data/{format}/train.jsonl").splitlines()]


def test_trail() -> None:
    [row] = export_rows(load_record("trail", {"trace": TRACE, "labels": LABELS, "x_time": 7}), "trail")
    labels = row["labels"]
    assert (row["trace"], row["x_time"]) == (TRACE, 7)
    assert (labels["trace_id"], labels["errors"], labels["scores"]) == ("t-1", LABELS["errors"], LABELS["scores"])
    assert labels["rater"] == "TRAIL annotators"


def test_agent_process_bench() -> None:
    [row] = export_rows(load_record("chat", {**CHAT, "reward": 1.0, "info": {"cost": 0.5}}), "chat")
    assert (row["reward"], row["info"]) == (1.0, {"cost": 0.5})
    assert (row["messages"], row["step_labels"], row["final_label"]) == (
        *(CHAT["messages"], CHAT["step_labels"], CHAT["final_label"]),
    )


def test_agent_reward_bench() -> None:
    project = load_record("agent_reward_bench", {**TRAJECTORY, "annotations": ROWS})
    assert sorted(export_rows(project, "agent_reward_bench"), key=lambda row: row["annotator_name"]) == ROWS
    [trajectory] = export_rows(project, "agent_reward_traces")
    trajectory["annotations"].sort(key=lambda row: row["annotator_name"])
    assert trajectory == {**TRAJECTORY, "annotations": ROWS}
    steps = export_rows(project, "steps")
    assert {len(row["ratings"]) for row in steps} == {0}


def test_verdicts_without_ratings_of_steps_are_no_votes() -> None:
    project = load_record("agent_reward_bench", {**TRAJECTORY, "annotations": ROWS})
    submitted_work.refresh_quality(now=factories.NOW)
    assert not FirstErrorReport.objects.filter(project=project, is_censored=False).exists()
    assert not Settlement.objects.filter(project=project, state="settled").exists()


@pytest.mark.parametrize("format", ["trail", "agent_reward_bench"])
def test_people_answer_in_these_formats(format: str) -> None:
    """A trace of another format has the labels of people too."""
    project = load_record(
        "native", {"problem": "p", "steps": ["a"], "labels": [-1], "trace_answers": {"looping": "no"}}
    )
    [row] = export_rows(project, format)
    if format == "trail":
        assert row["labels"]["errors"] == [{"category": "", "location": "0", "evidence": ""}]
        assert row["labels"]["trace_answers"] == {"looping": "no"}
    else:
        assert row["trajectory_looping"] == "No"
