"""A file beside the server that is edited, replaced or removed while its import reads it."""

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formats import input_files
from jobs import control, runner
from jobs.models import Job, JobState
from labeling.models import Problem, Project, Source, Trace
from labeling.traces import import_job
from tests import call_counter, factories
from tests.labeling.traces.test_import_job import asked, native, run, written

pytestmark = pytest.mark.django_db

OLD, NEW = [native(n) for n in range(10, 40)], [native(n) for n in range(50, 80)]
Change = Callable[[Path], None]


@pytest.fixture(autouse=True)
def _small_chunks(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DATA_DIR = tmp_path / "data"
    monkeypatch.setattr(import_job, "CHUNK_ON_POSTGRESQL", 10)


def edited(path: Path) -> None:
    """As many bytes as before, and a time of change that says nothing."""
    before = path.stat()
    path.write_bytes(b"".join(line + b"\n" for line in NEW))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path) -> None:
    written(path.parent, *NEW, name="new").replace(path)


def cut_off(path: Path) -> None:
    os.truncate(path, 200)


CHANGES: list[Change] = [edited, replaced, cut_off, Path.unlink]


def brought(project: Project, path: Path, now: dt.datetime, change: Change, **choices: Any) -> Job:
    """The file is changed once ten records are in."""
    job = asked(project, path, now, **choices)

    def chunks(job: Job) -> Any:
        for step in import_job.chunks(job):
            if Trace.objects.filter(project=project).count() == 10 and job.done == 10 and change not in done:
                done.append(change)
                change(path)
            yield step

    done: list[Change] = []
    runner.run_job(job.pk, chunks)
    job.refresh_from_db()
    assert done == [change]
    return job


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_leaves_nothing_behind(tmp_path: Path, now: dt.datetime, change: Change) -> None:
    path = written(tmp_path, *OLD)
    job = brought(factories.make_project(), path, now, change)
    assert (job.state, job.failure) == (
        JobState.FAILED,
        "The file was changed while it was coming in: import it again as it is now.",
    )
    assert not Problem.objects.exists()
    written(tmp_path, *OLD)
    control.retry_job(job=job, by=None, now=now)
    assert run(job).state == JobState.DONE, "put back as it was, it comes in"
    assert (Trace.objects.count(), Source.objects.get().undone_at) == (30, None)


def test_a_file_that_changes_leniently_keeps_what_is_of_the_file_as_it_was(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    job = brought(project, written(tmp_path, *OLD), now, edited, is_lenient=True)
    texts = set(Problem.objects.values_list("text", flat=True))
    assert texts == {f"What is {n}?" for n in range(10, 30)}, "a chunk read before the change is of the file as it was"
    assert job.state == JobState.FAILED
    assert run(asked(project, tmp_path / "traces.jsonl", now)).state == JobState.DONE, "the way out that was named"


def test_a_file_that_was_in_before_stays_when_it_changes(tmp_path: Path, now: dt.datetime) -> None:
    project, path = factories.make_project(), written(tmp_path, *OLD[:10])
    run(asked(project, path, now))
    job = asked(project, path, now)
    path.write_bytes(NEW[0])
    assert run(job).failure == "The file has changed since its import was asked for: import it again."
    assert Trace.objects.count() == 10


def test_watch_reads_anew_only_what_was_touched(tmp_path: Path) -> None:
    path = written(tmp_path, *OLD)
    watch = input_files.FileWatch(path, input_files.hash_file(path))

    def look() -> None:
        assert watch.is_same()

    assert [call_counter.count_calls(input_files.hash_file, look) for _ in range(2)] == [1, 0]
    path.touch()
    assert [call_counter.count_calls(input_files.hash_file, look) for _ in range(2)] == [1, 0]
    edited(path)
    assert not watch.is_same()
