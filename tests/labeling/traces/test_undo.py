"""Undone imports: nothing that people submitted is lost."""

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from events.models import Event
from jobs import runner
from jobs.models import Job, JobState
from jobs.runner import Chunk, JobProgress
from labeling import queue
from labeling.models import (
    Assignment,
    BenchmarkProblem,
    Gold,
    Judgment,
    Option,
    OptionPart,
    Problem,
    Project,
    QueueEntry,
    Source,
    Step,
    Submission,
    Trace,
    TraceDraw,
    TraceTag,
)
from labeling.traces import import_job, tags, undo
from labeling.traces.scan import ImportOptions
from tests import factories
from tests.formats import prm800k_lines as prm

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"


def native(number: int) -> bytes:
    return json.dumps({"problem": f"What is {number}?", "steps": ["a", "b"]}).encode()


def import_lines(project: Project, folder: Path, lines: Sequence[bytes], now: dt.datetime, **choices: Any) -> Source:
    path = folder / "traces.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    job = import_job.request_import(project=project, path=path, choices=ImportOptions(**choices), by=None, now=now)
    assert runner.run_job(job.pk, import_job.chunks) == JobState.DONE
    return Source.objects.get(pk=job.arguments["source"])


def undo_import(source: Source, now: dt.datetime) -> Job:
    job = undo.request_undo(source=source, by=None, now=now)
    runner.run_job(job.pk, undo.chunks)
    job.refresh_from_db()
    assert job.state == JobState.DONE, job.failure
    return job


def run_chunks(chunks: Iterator[JobProgress | Chunk], now: dt.datetime, n: int | None = None) -> list[JobProgress]:
    return [chunk if isinstance(chunk, JobProgress) else chunk(now) for chunk in islice(chunks, n)]


def claim_trace(project: Project, now: dt.datetime, *, is_opened: bool) -> Assignment:
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now)
    if is_opened:
        queue.open_assignment(assignment_id=claim.assignment_id, rater_id=rater.pk, now=now)
    return Assignment.objects.get(pk=claim.assignment_id)


def test_undo_removes_unopened_traces_and_withdraws_the_others(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project(reserve_problem_share=0, overlap=1)
    other = factories.make_trace(project)
    source = import_lines(project, tmp_path, [native(number) for number in range(25)], now)
    held, opened = claim_trace(project, now, is_opened=False), claim_trace(project, now, is_opened=True)
    job = undo_import(source, now)
    assert job.result["undone"] == {
        "is_withdrawn": True,
        "after": job.checkpoint["after"],
        "removed": 24,
        "withdrawn": 1,
        "problems_removed": 24,
    }
    assert set(Trace.objects.values_list("pk", flat=True)) == {other.pk, opened.trace_id}
    assert Trace.objects.get(pk=opened.trace_id).withdrawn_at is not None
    assert not Assignment.objects.filter(pk=held.pk).exists()
    assert not QueueEntry.objects.filter(slots_left__gt=0).exists()
    assert list(Event.objects.filter(what__contains="undone").values_list("what", flat=True)) == ["import.undone"]
    assert not Event.objects.filter(what="trace.withdrawn").exists()
    source.refresh_from_db()
    assert source.undone_at is not None


def test_undo_keeps_imported_labels(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    source = import_lines(project, tmp_path, [prm.make_line(), prm.make_line(labeler="ben")], now)
    before = (Submission.objects.count(), Judgment.objects.count())
    undo_import(source, now)
    assert (Submission.objects.count(), Judgment.objects.count()) == before
    assert Trace.objects.get().withdrawn_at is not None


def test_undo_removes_gold_and_benchmark_lists(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    source = import_lines(project, tmp_path, [prm.make_line()], now, labels="gold", purpose="benchmark")
    assert (Gold.objects.count(), BenchmarkProblem.objects.count()) == (1, 1)
    undo_import(source, now)
    assert [model.objects.count() for model in (Gold, BenchmarkProblem, Trace, Problem)] == [0, 0, 0, 0]


def test_undo_keeps_drawn_traces(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    source = import_lines(project, tmp_path, [native(1), native(2)], now)
    drawn = Trace.objects.order_by("pk")[0]
    TraceDraw.objects.create(
        project=project, batch=1, rank=1, trace=drawn, arm="policy", q=1, pool_size=2, n_left=2, drawn_at=now
    )
    undo_import(source, now)
    assert Trace.objects.get().pk == drawn.pk


def test_undo_is_refused_while_the_import_is_running(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    source = import_lines(project, tmp_path, [native(1)], now)
    import_job.request_import(
        project=project, path=tmp_path / "traces.jsonl", choices=ImportOptions(), by=None, now=now
    )
    with pytest.raises(undo.ImportStillRunning):
        undo.request_undo(source=source, by=None, now=now)


@pytest.mark.fault
def test_import_after_undo_queues_the_remaining_labels(tmp_path: Path, now: dt.datetime) -> None:
    """The overlap is two; the opened trace needs one more label."""
    project = factories.make_project(overlap=2, reserve_problem_share=0)
    lines = [native(1), native(2)]
    source = import_lines(project, tmp_path, lines, now)
    opened = claim_trace(project, now, is_opened=True)
    undo_import(source, now)
    assert import_lines(project, tmp_path, lines, now) == source
    source.refresh_from_db()
    assert source.undone_at is None
    assert Trace.objects.filter(withdrawn_at=None).count() == 2
    left = dict(QueueEntry.objects.values_list("trace", "slots_left"))
    assert left.pop(opened.trace_id) == 1
    assert list(left.values()) == [2]


def test_undo_takes_effect_before_traces_are_removed(
    tmp_path: Path, now: dt.datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo, "_CHUNK_TRACES", 2)
    project = factories.make_project(reserve_problem_share=0)
    lines = [native(number) for number in range(5)]
    source, rater = import_lines(project, tmp_path, lines, now), factories.make_rater(project)
    chunks = undo.run_undo(source, by=None, checkpoint={})
    progress = run_chunks(chunks, now, 4)
    assert [(each.done, each.total) for each in progress] == [(0, 5)] * 4
    source.refresh_from_db()
    assert source.undone_at is not None
    assert Trace.objects.filter(withdrawn_at=None).count() == 0
    assert Trace.objects.count() == 5
    with pytest.raises(queue.NothingLeft):
        queue.claim_trace(rater_id=rater.pk, now=now)


@pytest.mark.fault
def test_traces_imported_again_during_the_undo_stay(
    tmp_path: Path, now: dt.datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo, "_CHUNK_TRACES", 2)
    project = factories.make_project()
    lines = [native(number) for number in range(5)]
    source = import_lines(project, tmp_path, lines, now)
    chunks = undo.run_undo(source, by=None, checkpoint={})
    run_chunks(chunks, now, 5)  # withdraws five traces, and removes two
    assert Trace.objects.count() == 3
    import_lines(project, tmp_path, lines, now)
    last = run_chunks(chunks, now)[-1]
    assert (last.result or {})["undone"]["removed"] == 2
    assert Trace.objects.available().count() == 5
    source.refresh_from_db()
    assert source.undone_at is None


def test_undo_removes_what_belongs_to_a_trace(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    source = import_lines(project, tmp_path, [native(1)], now)
    OptionPart.objects.create(option=Option.objects.all()[0], position=0, kind="call", text="{}")
    ids = [Trace.objects.get().pk]
    tags.add_tag(project_id=project.pk, trace_ids=ids, name="odd", by=None, now=now)
    undo_import(source, now)
    assert not any(model.objects.exists() for model in (Problem, Trace, TraceTag, Step, Option, OptionPart))


@pytest.mark.fault
def test_undo_continues_after_an_interruption(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    source = import_lines(project, tmp_path, [native(number) for number in range(450)], now)
    checkpoint: dict[str, Any] = {}
    for chunk in undo.run_undo(source, by=None, checkpoint={}):
        assert callable(chunk)
        checkpoint = dict(chunk(now).checkpoint or {})
        break
    for chunk in undo.run_undo(source, by=None, checkpoint=checkpoint):
        assert callable(chunk)
        last = chunk(now)
    assert (last.result or {})["undone"]["removed"] == 450
    assert not Trace.objects.exists()


def test_undo_import_lists_and_undoes(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    source, out = import_lines(project, tmp_path, [native(1)], now), StringIO()
    call_command("undo_import", "--project", project.slug, stdout=out)
    assert source.name in out.getvalue()
    call_command("undo_import", str(source.pk), "--project", project.slug, stdout=out)
    assert not Trace.objects.exists()


def test_import_as_gold_after_undo_queues_gold(tmp_path: Path, now: dt.datetime) -> None:
    """The trace was opened as regular work; imported again as gold, it is only queued as gold."""
    project = factories.make_project(overlap=2, reserve_problem_share=0)
    source = import_lines(project, tmp_path, [prm.make_line()], now, labels="none")
    claim_trace(project, now, is_opened=True)
    undo_import(source, now)
    import_lines(project, tmp_path, [prm.make_line()], now, labels="gold")
    assert Trace.objects.get().withdrawn_at is None
    assert list(QueueEntry.objects.filter(is_open=True).values_list("lane__arm", "slots_left")) == [("gold", 50)]
