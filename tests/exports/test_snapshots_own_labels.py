"""Labels made on the platform, in PRM800K and binary formats."""

import json

import pytest

from formats.examples import LabelRule
from labeling import assignments
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Lane, Project
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db
OWN = "Two, rather."


def make_corrected_project(generation: int = 3) -> Project:
    """Return a project with one submission: a first error with an alternative and a corrected step by the rater."""
    project = factories.make_project(asks_corrected_step=True, reserve_problem_share=0.0)
    trace = factories.make_trace(project, ["One.", ["Too.", "Tow."], "Three."])
    rater = factories.make_rater(project)
    assignment = factories.make_assignment(rater, trace)
    lane = Lane.objects.create(project=project, arm="uniform", generation=generation)
    Assignment.objects.filter(pk=assignment.pk).update(lane=lane)
    client = WorkPageClient(assignment)
    written = client.write(1, None, kind="write_step", option=None, text=OWN)
    client.send(client.write(0, 1), client.write(1, -1), client.write(1, -1, option=1), written)
    assignments.submit(**client.place, now=factories.NOW, by=rater.user)
    return project


def test_own_labels_have_the_format_of_the_published_files() -> None:
    project = make_corrected_project()
    line = read_file(build_snapshot(project, "prm800k"), "data/prm800k/train.jsonl")
    record = json.loads(line)
    assert line == json.dumps(record).encode() + b"\n"
    assert (record["generation"], record["question"]["ground_truth_solution"]) == (3, None)
    assert list(record["question"])[:3] == ["problem", "ground_truth_solution", "ground_truth_answer"]
    first, last = record["label"]["steps"]
    assert first["completions"] == [{"text": "One.", "rating": 1, "flagged": None}]
    assert [(each["rating"], each["flagged"]) for each in last["completions"]] == [(-1, None), (-1, False)]
    assert last["human_completion"] == {"text": OWN, "rating": None, "source": "human", "flagged": False}
    assert last["chosen_completion"] is None
    assert build_snapshot(project, "prm800k", filters=ManifestFilters(generations=[3])).manifest.n_rows == 1  # type: ignore[union-attr]  # it is built
    assert build_snapshot(project, "prm800k", filters=ManifestFilters(generations=[2])).manifest.n_rows == 0  # type: ignore[union-attr]  # it is built


def test_export_is_the_same_after_an_import_into_another_project() -> None:
    line = read_file(build_snapshot(make_corrected_project(), "prm800k"), "data/prm800k/train.jsonl")
    other = factories.make_project("other", reserve_problem_share=0.0)
    load_lines(other, line.rstrip(b"\n"))
    assert read_file(build_snapshot(other, "prm800k"), "data/prm800k/train.jsonl") == line


def test_first_error_is_unchanged_by_a_corrected_step() -> None:
    made = build_snapshot(make_corrected_project(), "processbench", "first_errors")
    for name, key in (("processbench", "label"), ("first_errors", "first_error")):
        assert [json.loads(row)[key] for row in read_file(made, f"data/{name}/train.jsonl").splitlines()] == [1]


def test_corrected_step_is_exported_on_request() -> None:
    project = make_corrected_project()
    for steps, wanted in (("omit", []), ("positive", [["One.", OWN]])):
        made = build_snapshot(project, "trl", "pairs", rule=LabelRule(human_steps=steps))  # type: ignore[arg-type]  # one of the two
        rows = [json.loads(row) for row in read_file(made, "data/trl/train.jsonl").splitlines()]
        assert [row["completions"] for row in rows if OWN in row["completions"]] == wanted
        assert all(row["labels"][-1] is (OWN in row["completions"]) for row in rows if len(row["labels"]) == 2)
        pairs = made.files.filter(format="pairs")
        assert pairs.exists() is (steps == "positive")
