"""Build whole snapshots in tests."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from exports import finish_job, snapshots
from exports.models import Snapshot
from exports.orders import SnapshotOrder
from jobs.runner import Chunk, JobProgress
from labeling.models import Project
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import load_lines


def run_chunks(chunks: Iterable[JobProgress | Chunk]) -> None:
    for chunk in chunks:
        if not isinstance(chunk, JobProgress):
            run_chunk(chunk)


def run_chunk(chunk: Chunk) -> JobProgress:
    with transaction.atomic():
        return chunk(factories.NOW)


def order_snapshot(
    project: Project, *formats: str, name: str = "", purpose: str = "archive", enqueue: bool = False, **order: Any
) -> Snapshot:
    return snapshots.order_snapshot(
        project=project,
        name=name or snapshots.suggest_name(project),
        purpose=purpose,
        order=SnapshotOrder(formats=list(formats), **order),
        by=None,
        now=factories.NOW,
        enqueue=enqueue,
    )


def build_snapshot(project: Project, *formats: str, purpose: str = "archive", **order: Any) -> Snapshot:
    """Order and build a snapshot as the command line does."""
    snapshot = order_snapshot(project, *formats, purpose=purpose, **order)
    run_chunks(snapshots.prepare_snapshot(snapshot, enqueue=False))
    for shard in snapshot.shards.order_by("number"):
        run_chunks(snapshots.build_shard(snapshot, shard.number, enqueue=False))
    snapshot.refresh_from_db()
    run_chunks(finish_job.finish_snapshot(snapshot))
    snapshot.refresh_from_db()
    return snapshot


def read_file(snapshot: Snapshot, name: str) -> bytes:
    return (snapshots.snapshot_folder(snapshot) / name).read_bytes()


def make_labeled_project(n: int = 6) -> Project:
    """Return a project with `n` traces, each labeled by another rater."""
    project = factories.make_project(reserve_problem_share=0.0)
    lines = (prm.make_line(problem=f"What is {i} + {i}?", labeler=f"r{i}") for i in range(n))
    load_lines(project, *lines)
    return project
