"""A file that is edited, replaced or removed while its import reads it."""

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
from tests.labeling.traces.test_import_job import native, request, run, write_lines

pytestmark = pytest.mark.django_db

OLD, NEW = [native(n) for n in range(10, 40)], [native(n) for n in range(50, 80)]
Change = Callable[[Path], None]


@pytest.fixture(autouse=True)
def _small_chunks(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DATA_DIR = tmp_path / "data"
    monkeypatch.setattr(import_job, "CHUNK_RECORDS", 10)


def edited(path: Path) -> None:
    """Change the content but not the size or the modification time."""
    before = path.stat()
    path.write_bytes(b"".join(line + b"\n" for line in NEW))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path) -> None:
    write_lines(path.parent, *NEW, name="new").replace(path)


def cut_off(path: Path) -> None:
    os.truncate(path, 200)


CHANGES: list[Change] = [edited, replaced, cut_off, Path.unlink]


def import_with_change(
    project: Project, path: Path, now: dt.datetime, change: Change, **choices: Any
) -> tuple[Job, Exception | None]:
    """Change the file after ten records are imported. Returns the job and what it raised."""
    job = request(project, path, now, **choices)

    def chunks(job: Job) -> Any:
        try:
            for step in import_job.chunks(job):
                if Trace.objects.filter(project=project).count() == 10 and job.done == 10 and change not in done:
                    done.append(change)
                    change(path)
                yield step
        except Exception as error:
            raised.append(error)
            raise

    done: list[Change] = []
    raised: list[Exception] = []
    runner.run_job(job.pk, chunks)
    job.refresh_from_db()
    assert done == [change]
    return job, raised[0] if raised else None


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.fault
def test_strict_import_of_a_changed_file_leaves_nothing(tmp_path: Path, now: dt.datetime, change: Change) -> None:
    path = write_lines(tmp_path, *OLD)
    job, error = import_with_change(factories.make_project(), path, now, change)
    assert job.state == JobState.FAILED
    assert isinstance(error, import_job.FileChanged)
    assert not Problem.objects.exists()
    write_lines(tmp_path, *OLD)
    control.retry_job(job=job, by=None, now=now)
    assert run(job).state == JobState.DONE, "the original file can be imported"
    assert (Trace.objects.count(), Source.objects.get().undone_at) == (30, None)


def test_lenient_import_of_a_changed_file_keeps_the_chunks_before_the_change(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    job, error = import_with_change(project, write_lines(tmp_path, *OLD), now, edited, is_lenient=True)
    texts = set(Problem.objects.values_list("text", flat=True))
    assert texts == {f"What is {n}?" for n in range(10, 30)}, "chunks read before the change stay"
    assert job.state == JobState.FAILED
    assert isinstance(error, import_job.FileChanged)
    assert run(request(project, tmp_path / "traces.jsonl", now)).state == JobState.DONE


@pytest.mark.fault
def test_a_changed_file_does_not_affect_its_earlier_import(tmp_path: Path, now: dt.datetime) -> None:
    project, path = factories.make_project(), write_lines(tmp_path, *OLD[:10])
    run(request(project, path, now))
    job = request(project, path, now)
    path.write_bytes(NEW[0])
    assert run(job).state == JobState.FAILED
    assert Trace.objects.count() == 10


def test_watch_hashes_a_file_again_only_if_it_was_touched(tmp_path: Path) -> None:
    path = write_lines(tmp_path, *OLD)
    watch = input_files.FileWatch(path, input_files.hash_file(path))

    def check() -> None:
        assert watch.is_same()

    assert [call_counter.count_calls(input_files.hash_file, check) for _ in range(2)] == [1, 0]
    path.touch()
    assert [call_counter.count_calls(input_files.hash_file, check) for _ in range(2)] == [1, 0]
    edited(path)
    assert not watch.is_same()
