"""Kill the worker during snapshot builds: after a restart, the files are the same as those of an undisturbed build, and
they can be rewritten identically after traces were relabeled."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from exports import finish_job, snapshots
from exports.models import Snapshot
from exports.orders import Ending, SnapshotOrder
from jobs import control
from jobs.models import Job
from labeling.models import Assignment, Project
from tests import factories, servers
from tests.formats import prm800k_lines as prm
from tests.labeling.datasets.test_manifest import relabel
from tests.labeling.traces.test_load import bring_in

TRACES, LABELS_PER_TRACE, KILLS = 1200, 2, 2
ORDERS: dict[Ending, list[str]] = {"jsonl.gz": ["prm800k", "trl", "steps"], "parquet": ["steps", "trl", "first_errors"]}


@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("real_connections")
def test_killed_build_ends_with_the_bytes_of_an_undisturbed_one(broker: str, tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    project = make_labeled_project()
    start = partial(
        servers.start_worker,
        env=servers.process_environment(settings.DATA_DIR, broker=broker),
        log=tmp_path / "worker.log",
        concurrency=3,
    )
    with servers.publish_to(broker):
        made = [order_snapshot(project, ending) for ending in ORDERS]
        for attempt in range(1, KILLS + 1):
            with running(start()) as worker:
                servers.wait_until(partial(kill_in_the_middle, worker, attempt), what="the middle of a shard")
            assert_only_unfinished_files_are_left()
        with running(start()):
            servers.wait_until(partial(are_built, made), what="the end of both builds")
    for each in made:
        each.refresh_from_db()
        assert_identical_rewrite(each, tmp_path / "undisturbed")
    for assignment in Assignment.objects.filter(project=project)[:20]:
        relabel(assignment)
    for each in made:
        assert_identical_rewrite(each, tmp_path / "relabeled")


def make_labeled_project() -> Project:
    """Import traces with several labels each, because all labels of a trace belong to one shard."""
    with transaction.atomic():
        project = factories.make_project(reserve_problem_share=0.0)
        lines = [
            prm.make_line(problem=f"What is {number} + {number}?", labeler=f"r{rater}")
            for number in range(TRACES)
            for rater in range(LABELS_PER_TRACE)
        ]
        bring_in(project, *lines, chunk=1000)
    return project


def order_snapshot(project: Project, ending: Ending) -> Snapshot:
    return snapshots.order_snapshot(
        project=project,
        name=f"in-{ending}",
        purpose="archive",
        order=SnapshotOrder(formats=ORDERS[ending], ending=ending, validation=0.3),
        by=None,
        now=timezone.now(),
    )


@contextmanager
def running(worker: servers.ServerProcess) -> Iterator[servers.ServerProcess]:
    try:
        yield worker
    finally:
        worker.kill()


def sweep() -> None:
    """Sweep jobs now, with little patience."""
    control.sweep_jobs(now=timezone.now(), patience=dt.timedelta(seconds=2))


def kill_in_the_middle(worker: servers.ServerProcess, attempt: int) -> bool:
    """Kill the worker while a shard of this attempt is partly written. The lock on its row stops its progress."""
    sweep()
    with transaction.atomic():
        halves = Job.objects.filter(kind=snapshots.BUILD, state="running", attempt=attempt, done__lt=F("total"))
        is_time = bool(halves.filter(done__gt=0, fruitless_starts=0).select_for_update())
        if is_time:
            worker.kill()
    return is_time


def assert_only_unfinished_files_are_left() -> None:
    """An interrupted shard leaves no file that looks complete. Expire the leases too."""
    jobs = list(Job.objects.filter(kind=snapshots.BUILD, state="running"))
    assert any(0 < job.done < (job.total or 0) for job in jobs)
    for job in jobs:
        folder = snapshots.snapshot_folder(Snapshot.objects.get(pk=job.arguments["snapshot"]))
        names = [path.name for path in folder.rglob("*") if path.is_file()]
        assert all(name.endswith(".unfinished") for name in names), names
        assert names or job.done == 0
    now = timezone.now()
    Job.objects.filter(state="running").update(lease_ends_at=now - dt.timedelta(seconds=1))


def are_built(made: list[Snapshot]) -> bool:
    sweep()
    failed = Job.objects.filter(state="failed").values_list("failure", flat=True)
    assert not failed, list(failed)
    return Snapshot.objects.filter(pk__in=[each.pk for each in made], built_at__isnull=False).count() == len(made)


def assert_identical_rewrite(made: Snapshot, into: Path) -> None:
    """Rewriting the snapshot gives the same files with the same content."""
    folder, again = snapshots.snapshot_folder(made), into / made.name
    assert snapshots.rewrite_files(made, again) == []
    finish_job.write_card_files(made, again)
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert {name.as_posix() for name in names} == set(made.files.values_list("name", flat=True))
    assert len(names) > 2 + 2 * len(made.order["formats"]), names  # card and manifest, two splits, weights
    for name in names:
        assert (folder / name).read_bytes() == (again / name).read_bytes(), name
