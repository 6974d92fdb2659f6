"""Snapshots from the order to the files."""

import gzip
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import zstandard
from django.db import transaction

from exports import finish_job, snapshots
from exports.models import Snapshot
from exports.orders import InvalidOrder, SnapshotOrder
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Manifest, Project, Source, Trace
from prm import registry, scores, trace_texts
from prm.models import PRM
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.datasets.test_manifest import relabel
from tests.labeling.traces.test_load import bring_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


def run(chunks: Any) -> None:
    for chunk in chunks:
        if not isinstance(chunk, JobProgress):
            do(chunk)


def do(chunk: Chunk) -> JobProgress:
    with transaction.atomic():
        return chunk(factories.NOW)


def make(project: Project, *formats: str, purpose: str = "archive", **wanted: Any) -> Snapshot:
    """All the way, as the command line goes it."""
    made = snapshots.order_snapshot(
        project=project,
        name=snapshots.suggest_name(project),
        purpose=purpose,
        wanted=SnapshotOrder(formats=list(formats), **wanted),
        by=None,
        now=factories.NOW,
        asks=False,
    )
    run(snapshots.prepare_snapshot(made, asks=False))
    for shard in made.shards.order_by("number"):
        run(snapshots.build_shard(made, shard.number, asks=False))
    made.refresh_from_db()
    run(finish_job.finish_snapshot(made))
    made.refresh_from_db()
    return made


def content(made: Snapshot, name: str) -> bytes:
    return (snapshots.snapshot_folder(made) / name).read_bytes()


def labelled(n: int = 6) -> Project:
    project = factories.make_project(reserve_problem_share=0.0)
    bring_in(
        project, *(prm.make_line(problem=f"What is {number} + {number}?", labeler=f"r{number}") for number in range(n))
    )
    return project


@pytest.mark.parametrize("name", ["genuine.jsonl", "phase1_train.reconstructed.jsonl"])
def test_archive_gives_real_files_back(shared_data: Path, name: str) -> None:
    project = factories.make_project()
    source = (shared_data / "prm800k" / name).read_bytes()
    bring_in(project, *source.splitlines(), chunk=200)
    made = make(project, "prm800k")
    assert content(made, "data/prm800k/train.jsonl") == source
    (file,) = made.files.filter(format="prm800k")
    assert (file.rows, file.sha256) == (len(source.splitlines()), hashlib.sha256(source).hexdigest())
    described = json.loads(content(made, "manifest.json"))
    assert described["files"][0]["sha256"] == file.sha256


def test_files_are_written_again_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After relabelling, in shards of two rows, in every container."""
    monkeypatch.setattr(snapshots, "SHARD", 2)
    project = labelled()
    for ending in ("jsonl.gz", "jsonl.zst", "parquet"):
        formats = ("trl", "steps") if ending == "parquet" else ("prm800k", "trl", "steps")
        made = make(project, *formats, ending=ending, validation=0.3)
        relabel(Assignment.objects.filter(submitted_revision=1).first())  # type: ignore[arg-type]  # there is one
        assert made.shards.count() == 3
        assert snapshots.rewrite_files(made, tmp_path / "again") == []
        finish_job.write_card_files(made, tmp_path / "again")
        for name in ("README.md", "manifest.json"):
            assert (tmp_path / "again" / name).read_bytes() == content(made, name)


def test_scores_are_those_of_the_prm_that_the_manifest_names(tmp_path: Path) -> None:
    """Another PRM becomes current and scores everything, and a licence is stated anew: the same bytes again."""
    project = labelled(3)
    *read, unread = Trace.objects.order_by("pk")
    first = current_prm(project, "first", dict.fromkeys(read, 0.25))
    made = make(project, "steps", "prm800k")
    rows = [json.loads(line) for line in content(made, "data/steps/train.jsonl").splitlines()]
    told = {(row["trace"], row["step_prm"], row["step_score"]) for row in rows}
    assert told == {*((trace.pk, first.label, 0.25) for trace in read), (unread.pk, "", None)}
    assert made.manifest is not None
    assert sorted(made.manifest.rows.values_list("score_version", flat=True)) == ["", first.label, first.label]
    assert json.loads(content(made, "manifest.json"))["plan"]["prm_label"] == first.label
    current_prm(project, "second", dict.fromkeys([*read, unread], 0.75))
    Source.objects.update(licence="other")
    assert snapshots.rewrite_files(made, tmp_path / "again") == []


def current_prm(project: Project, name: str, said: dict[Trace, float]) -> PRM:
    identity = registry.PRMIdentity("pushed", name)
    made = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    registry.make_current(prm=made, by=None, now=factories.NOW)
    read = trace_texts.load_trace_texts([trace.pk for trace in said])
    numbers = [np.full(len(text.steps), said[trace]) for text, trace in zip(read, said, strict=True)]
    scores.save_scores(prm=made, texts=read, scores=numbers, now=factories.NOW)
    return made


def test_containers_hold_the_same_rows() -> None:
    project = labelled()
    plain = content(make(project, "trl"), "data/trl/train.jsonl")
    packed = make(project, "trl", ending="jsonl.zst")
    with zstandard.ZstdDecompressor().stream_reader(
        io.BytesIO(content(packed, "data/trl/train.jsonl.zst")), read_across_frames=True
    ) as stream:
        assert stream.read() == plain
    assert gzip.decompress(content(make(project, "trl", ending="jsonl.gz"), "data/trl/train.jsonl.gz")) == plain
    table = make(project, "trl", ending="parquet")
    rows = pq.read_table(snapshots.snapshot_folder(table) / "data/trl/train.parquet")
    assert rows.to_pylist() == [json.loads(line) for line in plain.splitlines()]
    assert b'"_type": "Value"' in rows.schema.metadata[b"huggingface"]
    weights = content(table, "data/trl/train.weights.jsonl")
    assert len(weights.splitlines()) == len(plain.splitlines())


def test_splits_never_part_a_problem_nor_what_is_nearly_the_same() -> None:
    project = factories.make_project(reserve_problem_share=0.0)
    story = (
        "A farmer walks to the market with {} eggs in her basket and sells half of them before noon, then walks home."
    )
    problems = [story.format(n) for n in range(12)] + [
        f"What is {n} times {n * 7}, and why is it so?" for n in range(40)
    ]
    bring_in(project, *(prm.make_line(problem=each, labeler=who) for each in problems for who in ("ann", "ben")))
    made = make(project, "trl", validation=0.25, test=0.25)
    sides: dict[str, set[str]] = {}
    for file in made.files.filter(format="trl"):
        for line in content(made, file.name).splitlines():
            sides.setdefault(json.loads(line)["prompt"], set()).add(file.split)
    assert {file.split for file in made.files.filter(format="trl")} == {"train", "validation", "test"}
    assert all(len(each) == 1 for each in sides.values())
    assert len({next(iter(sides[story.format(n)])) for n in range(12)}) == 1
    bring_in(project, prm.make_line(problem="Something new?"))
    grown = make(project, "trl", validation=0.25, test=0.25)
    for file in grown.files.filter(format="trl"):
        for line in content(grown, file.name).splitlines():
            prompt = json.loads(line)["prompt"]
            assert sides.setdefault(prompt, {file.split}) == {file.split}


def test_outcomes_are_of_traces_that_nobody_rated() -> None:
    project = factories.make_project()
    factories.make_trace(project, is_right=False, outcome_by="file")
    made = make(project, "outcomes", filters=ManifestFilters(unit="traces"))
    (row,) = map(json.loads, content(made, "data/outcomes/train.jsonl").splitlines())
    assert (row["is_right"], row["completion"]) == (False, "One.\nTwo.\nThree.")


def test_training_drops_duplicates_when_asked() -> None:
    project = factories.make_project(reserve_problem_share=0.0)
    bring_in(project, prm.make_line(), prm.make_line(pre_generated_verifier_score=0.5), prm.make_line(problem="Other?"))
    assert make(project, "trl", purpose="training").manifest.n_rows == 3  # type: ignore[union-attr]  # it is built
    made = make(project, "trl", purpose="training", without_duplicates=True)
    assert made.manifest is not None
    assert made.manifest.left_out == {"duplicate": 1}


@pytest.mark.parametrize(
    "wanted",
    [
        {"formats": ["csv"]},
        {"formats": []},
        {"formats": ["trl"], "taken_in": ["gold"]},
        {"formats": ["trl"], "taken_in": ["rain"], "reason": "x"},
        {"formats": ["trl"], "validation": 0.6, "test": 0.5},
        {"formats": ["trl", "outcomes"]},
        {"formats": ["prm800k"], "ending": "parquet"},
        {"formats": ["prm800k"], "filters": ManifestFilters(is_consensus=True)},
    ],
)
def test_order_refuses_what_cannot_be_made(wanted: dict[str, Any]) -> None:
    project = factories.make_project()
    with pytest.raises(InvalidOrder):
        snapshots.order_snapshot(
            project=project, name="x", purpose="training", wanted=SnapshotOrder(**wanted), by=None, now=factories.NOW
        )
    assert not Snapshot.objects.exists()


def test_order_refuses_a_name_twice_and_cancel_ends_its_jobs() -> None:
    project = labelled(1)
    wanted = SnapshotOrder(formats=["trl"])
    made = snapshots.order_snapshot(
        project=project, name="x", purpose="archive", wanted=wanted, by=None, now=factories.NOW
    )
    with pytest.raises(InvalidOrder, match="called x already"):
        snapshots.order_snapshot(
            project=project, name="x", purpose="archive", wanted=wanted, by=None, now=factories.NOW
        )
    run(snapshots.prepare_snapshot(made, asks=True))
    assert Job.objects.filter(subject=snapshots.job_subject(made)).count() == 2
    snapshots.cancel_snapshot(snapshot=made, by=None, now=factories.NOW)
    assert not Job.objects.unfinished().exists()
    assert Manifest.objects.count() == 1


def test_jobs_build_a_snapshot_shard_by_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job asks for the next; the last shard asks for the card."""
    monkeypatch.setattr(snapshots, "SHARD", 2)
    made = snapshots.order_snapshot(
        project=labelled(5),
        name="x",
        purpose="archive",
        wanted=SnapshotOrder(formats=["trl"]),
        by=None,
        now=factories.NOW,
    )
    kinds = {snapshots.PREPARE: 1, snapshots.BUILD: 3, snapshots.FINISH: 1}
    for kind, n in kinds.items():
        jobs = list(Job.objects.filter(kind=kind))
        assert len(jobs) == n
        for job in jobs:
            made = Snapshot.objects.get(pk=made.pk)
            if kind == snapshots.BUILD:
                run(snapshots.build_shard(made, job.arguments["shard"], asks=True))
            else:
                run(
                    snapshots.prepare_snapshot(made, asks=True)
                    if kind == snapshots.PREPARE
                    else finish_job.finish_snapshot(made)
                )
    made.refresh_from_db()
    assert made.built_at is not None
    assert made.files.filter(format="trl").count() == 3
    assert sum(file.rows or 0 for file in made.files.filter(format="trl")) == 5
