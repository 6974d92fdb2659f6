"""Consensus exports have no label after the first error."""

import json
from typing import Any

import pytest

from formats.catalog import OUTPUT_FORMATS
from labeling import assignments
from labeling.datasets.selection import ManifestFilters
from labeling.models import Project, Rater, Trace
from labeling.quality import new_submissions
from labeling.quality.resolve import resolve_traces
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.labeling.assignments.clients import WorkPageClient

pytestmark = pytest.mark.django_db

ERROR = 2
STEPS = ["Take one.", ["Add two.", "Take two."], "That is four.", ["Beyond it.", "Beyond that."], "Beyond all."]
# PRM800K and AgentRewardBench have single raters' labels only, and outcomes have no rated steps.
CONSENSUS = [
    name for name, of in OUTPUT_FORMATS.items() if of.is_table and of.wants_raters and "agent_reward" not in name
]


def submit(rater: Rater, trace: Trace, ratings: list[int]) -> None:
    """Rate the path, and every alternative as wrong."""
    client = WorkPageClient(factories.make_assignment(rater, trace))
    others = [client.write(step, -1, option=1) for step in (1, 3) if step < len(ratings)]
    client.send(*(client.write(step, rating) for step, rating in enumerate(ratings)), *others)
    assignments.submit(**client.place, now=factories.NOW, by=rater.user)
    new_submissions.process_new_submissions(now=factories.NOW)


def export_rows(project: Project) -> dict[str, list[Any]]:
    snapshot = build_snapshot(project, *CONSENSUS, purpose="training", filters=ManifestFilters(is_consensus=True))
    return {
        name: [json.loads(line) for line in read_file(snapshot, f"data/{name}/train.jsonl").splitlines()]
        for name in CONSENSUS
    }


@pytest.mark.parametrize("protocol", ["first_error", "every_step"])
def test_no_format_holds_a_label_beyond_the_first_error(protocol: str) -> None:
    """Two raters find the error at the third step, one finds none. With `every_step`, all rate the later steps too."""
    project = factories.make_project(protocol=protocol, overlap=3, reserve_problem_share=0.0)
    trace = factories.make_trace(project, STEPS)
    stopped = [1, 1, -1] if protocol == "first_error" else [1, 1, -1, 1, 1]
    for ratings in (stopped, stopped, [1, 1, 1, 1, 1]):
        submit(factories.make_rater(project), trace, ratings)
    assert resolve_traces(project_id=project.pk, trace_ids=[trace.pk], now=factories.NOW) == 1
    found = export_rows(project)

    path = {"completions": ["Take one.", "Add two.", "That is four."], "labels": [True, True, False]}
    other = {"completions": ["Take one.", "Take two."], "labels": [True, False]}
    assert [{key: row[key] for key in path} for row in found["trl"]] == [other, path]
    for name in ("math_shepherd", "rlhflow"):
        assert len(found[name]) == 2
        assert "Beyond" not in json.dumps(found[name])
        assert "That is four." in json.dumps(found[name])
    assert [(row["step"], row["chosen"], row["rejected"]) for row in found["pairs"]] == [(1, "Add two.", "Take two.")]
    assert [row["label"] for row in found["processbench"]] == [ERROR]
    assert [row["labels"] for row in found["native"]] == [[1, 1, -1]]
    assert [row["response"]["process_correctness"] for row in found["visual_process_bench"]] == [[1, 1, -1]]
    assert [row["first_error"] for row in found["first_errors"] if row["by"] == "consensus"] == [ERROR]
    assert [error["location"] for row in found["trail"] for error in row["labels"]["errors"]] == [str(ERROR)]
    labels = {(row["step"], row["option"]): row["label"] for row in found["steps"]}
    assert labels == {(0, 0): 1, (1, 0): 1, (1, 1): -1, (2, 0): -1, (3, 0): None, (3, 1): None, (4, 0): None}
    beyond = [row for row in found["steps"] if row["step"] > ERROR]
    assert all(row["confidence"] is None for row in beyond)
    assert all(row["n_raters"] for row in beyond), "ratings after the error are kept"
    assert set(found) == {
        "trl",
        "visual_process_bench",
        "math_shepherd",
        "rlhflow",
        "pairs",
        "processbench",
        "first_errors",
        "steps",
        "native",
        "chat",
        "trail",
    }
