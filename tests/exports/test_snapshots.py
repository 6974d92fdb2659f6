"""Snapshots, from the order to the files."""

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import zstandard

from exports import finish_job, orders, snapshots
from exports.models import Snapshot
from exports.orders import InvalidOrder
from jobs.models import Job
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Manifest, Project, Source, Trace
from prm import labeled_traces, registry, scores
from prm.models import PRM
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, make_labeled_project, order_snapshot, read_file, run_chunks
from tests.formats import prm800k_lines as prm
from tests.labeling.datasets.test_manifest import relabel
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db


def read_lines(snapshot: Snapshot, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_file(snapshot, name).splitlines()]


@pytest.mark.fault
@pytest.mark.parametrize("name", ["genuine.jsonl", "phase1_train.reconstructed.jsonl"])
def test_archive_exports_imported_files_unchanged(shared_data: Path, name: str) -> None:
    project = factories.make_project()
    source = (shared_data / "prm800k" / name).read_bytes()
    load_lines(project, *source.splitlines(), chunk=200)
    snapshot = build_snapshot(project, "prm800k")
    assert read_file(snapshot, "data/prm800k/train.jsonl") == source
    (file,) = snapshot.files.filter(format="prm800k")
    assert (file.rows, file.sha256) == (len(source.splitlines()), hashlib.sha256(source).hexdigest())
    described = json.loads(read_file(snapshot, "manifest.json"))
    assert described["files"][0]["sha256"] == file.sha256


@pytest.mark.fault
def test_rewritten_files_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After relabeling, in shards of two rows, with every compression."""
    monkeypatch.setattr(snapshots, "SHARD", 2)
    project = make_labeled_project()
    for ending in ("jsonl.gz", "jsonl.zst", "csv", "parquet"):
        formats = ("trl", "steps") if ending in orders.TABLE_ENDINGS else ("prm800k", "trl", "steps")
        snapshot = build_snapshot(project, *formats, ending=ending, validation=0.3)
        assignment = Assignment.objects.filter(submitted_revision=1).first()
        assert assignment is not None
        relabel(assignment)
        assert snapshot.shards.count() == 3
        assert snapshots.rewrite_files(snapshot, tmp_path / "again") == []
        finish_job.write_card_files(snapshot, tmp_path / "again")
        for name in ("README.md", "manifest.json"):
            assert (tmp_path / "again" / name).read_bytes() == read_file(snapshot, name)


def make_current_prm(project: Project, name: str, step_scores: dict[Trace, float]) -> PRM:
    """Register a PRM that gives each step of a trace this score."""
    identity = registry.PRMIdentity("pushed", name)
    model = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    registry.make_current(prm=model, by=None, now=factories.NOW)
    texts = labeled_traces.load_trace_texts([trace.pk for trace in step_scores])
    values = [np.full(len(text.steps), score) for text, score in zip(texts, step_scores.values(), strict=True)]
    scores.save_scores(prm=model, texts=texts, scores=values, now=factories.NOW)
    return model


def test_scores_are_from_the_prm_of_the_manifest(tmp_path: Path) -> None:
    """A later current PRM and a changed license do not change the files."""
    project = make_labeled_project(3)
    *scored, unscored = Trace.objects.order_by("pk")
    first = make_current_prm(project, "first", dict.fromkeys(scored, 0.25))
    snapshot = build_snapshot(project, "steps", "prm800k")
    rows = read_lines(snapshot, "data/steps/train.jsonl")
    assert {(row["trace"], row["step_prm"], row["step_score"]) for row in rows} == {
        *((trace.pk, first.label, 0.25) for trace in scored),
        (unscored.pk, "", None),
    }
    assert snapshot.manifest is not None
    assert sorted(snapshot.manifest.rows.values_list("score_version", flat=True)) == ["", first.label, first.label]
    assert json.loads(read_file(snapshot, "manifest.json"))["plan"]["prm_label"] == first.label
    make_current_prm(project, "second", dict.fromkeys([*scored, unscored], 0.75))
    Source.objects.update(licence="other")
    assert snapshots.rewrite_files(snapshot, tmp_path / "again") == []


@pytest.mark.fault
def test_every_ending_has_the_same_rows() -> None:
    project = make_labeled_project()
    plain = read_file(build_snapshot(project, "trl"), "data/trl/train.jsonl")
    zst = read_file(build_snapshot(project, "trl", ending="jsonl.zst"), "data/trl/train.jsonl.zst")
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(zst), read_across_frames=True) as stream:
        assert stream.read() == plain
    gz = read_file(build_snapshot(project, "trl", ending="jsonl.gz"), "data/trl/train.jsonl.gz")
    assert gzip.decompress(gz) == plain
    parquet = build_snapshot(project, "trl", ending="parquet")
    rows = pq.read_table(snapshots.snapshot_folder(parquet) / "data/trl/train.parquet")
    assert rows.to_pylist() == [json.loads(line) for line in plain.splitlines()]
    assert b'"_type": "Value"' in rows.schema.metadata[b"huggingface"]
    text = read_file(build_snapshot(project, "trl", ending="csv"), "data/trl/train.csv").decode()
    assert [[*row.values()] for row in _rows(text)] == [[*map(_as_cell, row.values())] for row in rows.to_pylist()]
    weights = read_file(parquet, "data/trl/train.weights.jsonl")
    assert len(weights.splitlines()) == len(plain.splitlines())


def _as_cell(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _rows(text: str) -> Iterable[dict[str, str]]:
    return csv.DictReader(io.StringIO(text))


def collect_splits(snapshot: Snapshot) -> dict[str, set[str]]:
    """Return the splits of each problem."""
    splits: dict[str, set[str]] = {}
    for file in snapshot.files.filter(format="trl"):
        for row in read_lines(snapshot, file.name):
            splits.setdefault(row["prompt"], set()).add(file.split)
    return splits


@pytest.mark.fault
def test_a_problem_and_similar_ones_stay_in_one_split() -> None:
    project = factories.make_project(reserve_problem_share=0.0)
    story = (
        "A farmer walks to the market with {} eggs in her basket and sells half of them before noon, then walks home."
    )
    similar = [story.format(n) for n in range(12)]
    problems = [*similar, *(f"What is {n} times {n * 7}, and why is it so?" for n in range(40))]
    load_lines(project, *(prm.make_line(problem=each, labeler=name) for each in problems for name in ("ann", "ben")))
    splits = collect_splits(build_snapshot(project, "trl", validation=0.25, test=0.25))
    assert set().union(*splits.values()) == {"train", "validation", "test"}
    assert all(len(each) == 1 for each in splits.values())
    assert len(set().union(*(splits[problem] for problem in similar))) == 1
    load_lines(project, prm.make_line(problem="Something new?"))
    grown = collect_splits(build_snapshot(project, "trl", validation=0.25, test=0.25))
    assert grown == {**splits, "Something new?": grown["Something new?"]}


def test_outcomes_include_traces_without_submissions() -> None:
    project = factories.make_project()
    factories.make_trace(project, is_right=False, outcome_by="file")
    snapshot = build_snapshot(project, "outcomes", filters=ManifestFilters(unit="traces"))
    (row,) = read_lines(snapshot, "data/outcomes/train.jsonl")
    assert row["is_right"] is False
    assert row["completion"] == "One.\nTwo.\nThree."


def test_duplicates_are_dropped_on_request() -> None:
    project = factories.make_project(reserve_problem_share=0.0)
    load_lines(
        project, prm.make_line(), prm.make_line(pre_generated_verifier_score=0.5), prm.make_line(problem="Other?")
    )
    everything = build_snapshot(project, "trl", purpose="training").manifest
    assert everything is not None
    assert everything.n_rows == 3
    distinct = build_snapshot(project, "trl", purpose="training", without_duplicates=True).manifest
    assert distinct is not None
    assert distinct.left_out == {"duplicate": 1}


@pytest.mark.parametrize(
    ("order", "code"),
    [
        ({"formats": ["csv"]}, "format"),
        ({"formats": []}, "format"),
        ({"formats": ["trl"], "taken_in": ["gold"]}, "reason"),
        ({"formats": ["trl"], "taken_in": ["rain"], "reason": "x"}, "exclusion"),
        ({"formats": ["trl"], "validation": 0.6, "test": 0.5}, "shares"),
        ({"formats": ["trl", "outcomes"]}, "unit"),
        ({"formats": ["prm800k"], "ending": "parquet"}, "ending"),
        ({"formats": ["prm800k"], "ending": "csv"}, "ending"),
        ({"formats": ["prm800k"], "filters": ManifestFilters(is_consensus=True)}, "consensus"),
    ],
)
def test_invalid_order_is_refused(order: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidOrder) as refused:
        order_snapshot(factories.make_project(), *order.pop("formats"), purpose="training", **order)
    assert refused.value.code == code
    assert not Snapshot.objects.exists()


def test_second_order_of_a_name_is_refused() -> None:
    project = make_labeled_project(1)
    order_snapshot(project, "trl", name="x")
    with pytest.raises(InvalidOrder) as refused:
        order_snapshot(project, "trl", name="x")
    assert refused.value.code == "name"


def test_cancel_ends_the_jobs_of_a_snapshot() -> None:
    snapshot = order_snapshot(make_labeled_project(1), "trl", enqueue=True)
    run_chunks(snapshots.prepare_snapshot(snapshot, enqueue=True))
    assert Job.objects.filter(subject=snapshots.job_subject(snapshot)).count() == 2
    snapshots.cancel_snapshot(snapshot=snapshot, by=None, now=factories.NOW)
    assert not Job.objects.unfinished().exists()
    assert Manifest.objects.count() == 1


def test_each_job_requests_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SHARD", 2)
    snapshot = order_snapshot(make_labeled_project(5), "trl", enqueue=True)

    def load_jobs(kind: str) -> list[Job]:
        snapshot.refresh_from_db()
        return list(Job.objects.filter(kind=kind))

    assert len(load_jobs(snapshots.PREPARE)) == 1
    run_chunks(snapshots.prepare_snapshot(snapshot, enqueue=True))
    jobs = load_jobs(snapshots.BUILD)
    assert len(jobs) == 3
    for job in jobs:
        assert not load_jobs(snapshots.FINISH)
        run_chunks(snapshots.build_shard(snapshot, job.arguments["shard"], enqueue=True))
    assert len(load_jobs(snapshots.FINISH)) == 1
    run_chunks(finish_job.finish_snapshot(snapshot))
    snapshot.refresh_from_db()
    assert snapshot.built_at is not None
    assert sorted(file.rows or 0 for file in snapshot.files.filter(format="trl")) == [1, 2, 2]
