"""kill -9 of the worker that writes the shards of a snapshot: the restarted build produces the same bytes as an
undisturbed build, and so does a rebuild after all traces were labeled again."""

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
from tests.labeling.traces.test_load import load_lines

TRACES, READERS_EACH, KILLS = 1200, 2, 2
ORDERS: dict[Ending, list[str]] = {"jsonl.gz": ["prm800k", "trl", "steps"], "parquet": ["steps", "trl", "first_errors"]}


@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("real_connections")
def test_killed_build_ends_with_the_bytes_of_an_undisturbed_one(broker: str, tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    project = labeled()
    start = partial(
        servers.start_worker,
        env=servers.process_environment(settings.DATA_DIR, broker=broker),
        log=tmp_path / "worker.log",
        concurrency=3,
    )
    with servers.publish_to(broker):
        made = [ordered(project, ending) for ending in ORDERS]
        for attempt in range(1, KILLS + 1):
            with running(start()) as worker:
                servers.wait_until(partial(strike, worker, attempt), what="the middle of a shard")
            see_what_is_left()
        with running(start()):
            servers.wait_until(partial(are_built, made), what="the end of both builds")
    for each in made:
        each.refresh_from_db()
        see_that_it_is_the_same(each, tmp_path / "undisturbed")
    for assignment in Assignment.objects.filter(project=project)[:20]:
        relabel(assignment)
    for each in made:
        see_that_it_is_the_same(each, tmp_path / "relabelled")


def labeled() -> Project:
    """Label each trace by several people, so that the rows of a trace must be next to each other."""
    with transaction.atomic():
        project = factories.make_project(reserve_problem_share=0.0)
        lines = [
            prm.make_line(problem=f"What is {number} + {number}?", labeler=f"r{reader}")
            for number in range(TRACES)
            for reader in range(READERS_EACH)
        ]
        load_lines(project, *lines, chunk=1000)
    return project


def ordered(project: Project, ending: Ending) -> Snapshot:
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
    """Sweep without waiting until the lease ends."""
    control.sweep_jobs(now=timezone.now(), patience=dt.timedelta(seconds=2))


def strike(worker: servers.ServerProcess, attempt: int) -> bool:
    """Kill the worker while it has written a part of a shard. The test locks the shard's row, so that the worker cannot
    continue."""
    sweep()
    with transaction.atomic():
        halves = Job.objects.filter(kind=snapshots.BUILD, state="running", attempt=attempt, done__lt=F("total"))
        is_time = bool(halves.filter(done__gt=0, fruitless_starts=0).select_for_update())
        if is_time:
            worker.kill()
    return is_time


def see_what_is_left() -> None:
    """Check that an interrupted shard leaves no file that could be taken for a complete one."""
    left = list(Job.objects.filter(kind=snapshots.BUILD, state="running"))
    assert any(0 < job.done < (job.total or 0) for job in left)
    for job in left:
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


def see_that_it_is_the_same(made: Snapshot, into: Path) -> None:
    """Check that the same files exist, and no others."""
    folder, again = snapshots.snapshot_folder(made), into / made.name
    assert snapshots.rewrite_files(made, again) == []
    finish_job.write_card_files(made, again)
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert {name.as_posix() for name in names} == set(made.files.values_list("name", flat=True))
    assert len(names) > 2 + 2 * len(made.order["formats"]), names  # card and manifest, two splits, weights
    for name in names:
        assert (folder / name).read_bytes() == (again / name).read_bytes(), name
