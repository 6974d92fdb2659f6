"""A file brought in as a job and from the command line."""

import datetime as dt
import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from events.models import Event
from jobs import runner
from jobs.models import Job, JobState
from labeling.importing import bringing
from labeling.models import Problem, Project, QueueEntry, Source, Submission, Trace
from tests import factories
from tests.labeling.importing import lines_of_prm800k as prm

pytestmark = pytest.mark.django_db


def written(folder: Path, *lines: bytes, name: str = "traces.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def asked(project: Project, path: Path, now: dt.datetime, *, is_lenient: bool = False) -> Job:
    return bringing.ask(
        project=project, path=path, format="auto", labels="judgments", is_lenient=is_lenient, by=None, now=now
    )


def run(job: Job) -> Job:
    runner.run(job.pk, bringing.chunks, sleep=lambda seconds: None)
    job.refresh_from_db()
    return job


def native(number: int) -> bytes:
    return json.dumps({"problem": f"What is {number}?", "steps": ["a", "b"]}).encode()


def test_bring_in_as_a_job_loads_and_reports(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    job = run(asked(project, written(tmp_path, prm.line(), prm.line(labeler="ben")), now))
    assert (job.state, job.done, job.total) == (JobState.DONE, 2, 2)
    assert job.result["report"]["submissions_added"] == 2
    assert Event.objects.filter(what="import.done", project=project.pk).count() == 1


def test_bring_in_strictly_leaves_nothing_of_a_bad_file(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    job = run(asked(project, written(tmp_path, prm.line(), b'{"question": 1}'), now))
    assert job.state == JobState.FAILED
    assert "line 2, column 14: Expected `object`, got `int`, in question" in job.failure
    assert not Problem.objects.exists()


def test_bring_in_leniently_leaves_bad_lines_out_and_says_which(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    job = run(asked(project, written(tmp_path, prm.line(), b"{", prm.line(labeler="ben")), now, is_lenient=True))
    assert job.state == JobState.DONE
    assert [line["line"] for line in job.result["report"]["bad_lines"]] == [2]
    assert Submission.objects.count() == 2


def test_bring_in_goes_on_where_it_broke_off(tmp_path: Path, now: dt.datetime) -> None:
    """The same records again and again: each is told from the others by how often it came before."""
    project = factories.make_project()
    lines = [prm.line(labeler=None)] * 1200
    arguments = bringing.prepare(
        project=project, path=written(tmp_path, *lines), format="auto", labels="judgments", is_lenient=False, now=now
    )
    checkpoint: dict[str, object] = {}
    for _ in range(3):  # each time the process dies after its second chunk
        n_written = 0
        for chunk in bringing.bring_in(arguments, checkpoint=checkpoint, by=None):
            if callable(chunk):
                checkpoint = dict(chunk(now).checkpoint or {})
                n_written += 1
            if n_written == 2:
                break
    for chunk in bringing.bring_in(arguments, checkpoint=checkpoint, by=None):
        if callable(chunk):
            last = chunk(now)
    assert Submission.objects.count() == 1200
    assert bringing.report_of(last).submissions_added == 1200


def test_bring_in_queues_what_nobody_rated(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project(reserve_problem_share=0.4, overlap=3)
    run(asked(project, written(tmp_path, *map(native, range(30))), now))
    entries = QueueEntry.objects.filter(lane__project=project)
    assert entries.count() == 30
    assert set(entries.values_list("slots_left", flat=True)) == {3}
    for arm, is_reserve in (("reserve", True), ("uniform", False)):
        found = entries.filter(lane__arm=arm).values_list("trace__problem__is_reserve", flat=True)
        assert set(found) == {is_reserve}


def test_bring_in_queues_nothing_that_came_with_ratings(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    run(asked(project, written(tmp_path, prm.line()), now))
    assert not QueueEntry.objects.filter(lane__project=project).exists()


def import_traces(path: Path, *arguments: str) -> str:
    out = StringIO()
    call_command("import_traces", str(path), "--project", "maths", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_import_traces_and_build_snapshot_give_a_file_back(tmp_path: Path) -> None:
    path = written(tmp_path, prm.line(), prm.line(labeler="ben").replace(b": ", b":"), prm.line(labeler=None))
    assert "3  new submissions" in import_traces(path)
    assert "0  new submissions" in import_traces(path)
    call_command("build_snapshot", "--project", "maths", "--out", str(tmp_path / "out"), stdout=StringIO())
    assert (tmp_path / "out/maths.prm800k.jsonl").read_bytes() == path.read_bytes()
    assert json.loads((tmp_path / "out/manifest.json").read_text())["rows"] == 3


def test_import_traces_reads_real_files_twice(shared_data: Path) -> None:
    path = shared_data / "gsm8k/example_model_solutions.jsonl"
    assert "150  new problems" in import_traces(path)
    assert " 0  new traces" in import_traces(path)
    assert Trace.objects.filter(is_right=True).exists()
    assert Source.objects.get().format == "gsm8k"


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (b'{"a": 1}\n', [], "none of the formats"),
        (prm.line() + b"\n{\n", [], "1 of 2 records are bad, nothing was imported"),
    ],
)
def test_import_traces_refuses_in_one_line(tmp_path: Path, content: bytes, arguments: list[str], message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(CommandError, match=message):
        import_traces(path, *arguments)
    assert not Problem.objects.exists()
