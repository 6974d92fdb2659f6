"""Imports as a job and from the command line."""

import datetime as dt
import gzip
import json
import random
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.core.management import CommandError, call_command

from events.models import Event
from formats.catalog import UnknownFormat
from formats.near_duplicates import digest_normalized
from jobs import control, runner
from jobs.models import Job, JobState
from jobs.runner import JobProgress
from labeling import benchmarks
from labeling.models import BenchmarkProblem, Gold, Problem, Project, QueueEntry, Rater, Source, Submission, Trace
from labeling.projects import rating_rules
from labeling.traces import import_job, scan
from labeling.traces.scan import ImportOptions
from tests import factories
from tests.formats import prm800k_lines as prm

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"


def write_lines(folder: Path, *lines: bytes, name: str = "traces.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def request(project: Project, path: Path, now: dt.datetime, **choices: Any) -> Job:
    return import_job.request_import(project=project, path=path, choices=ImportOptions(**choices), by=None, now=now)


def run(job: Job) -> Job:
    runner.run_job(job.pk, import_job.chunks)
    job.refresh_from_db()
    return job


def resume(last: JobProgress) -> dict[str, Any]:
    """Return the state that a job stores after its last chunk."""
    return {"checkpoint": last.checkpoint, "report": (last.result or {}).get("report"), "by": None}


def native(number: int) -> bytes:
    return json.dumps({"problem": f"What is {number}?", "steps": ["a", "b"]}).encode()


def test_import_job_loads_and_reports(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    job = run(request(project, write_lines(tmp_path, prm.make_line(), prm.make_line(labeler="ben")), now))
    assert (job.state, job.done, job.total) == (JobState.DONE, 2, 2)
    assert job.result["report"]["submissions_added"] == 2
    assert Event.objects.filter(what="import.done", project=project.pk).count() == 1


def test_import_stops_before_the_disk_is_full_and_continues(tmp_path: Path, now: dt.datetime, settings: Any) -> None:
    job = request(factories.make_project(), write_lines(tmp_path, prm.make_line()), now)
    settings.DATA_DIR, settings.LEAST_FREE_BYTES = tmp_path, 2**60
    assert run(job).state == JobState.FAILED
    assert not Problem.objects.exists()
    settings.LEAST_FREE_BYTES = 0
    control.retry_job(job=job, by=None, now=now)
    assert run(job).state == JobState.DONE


@pytest.mark.parametrize("name", ["traces.jsonl", "traces.jsonl.gz", "traces.jsonl.zst"])
def test_scan_reports_its_progress(
    tmp_path: Path, now: dt.datetime, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(import_job, "PROGRESS_EVERY", 100)
    lines = [prm.make_line(problem=str(random.Random(n).random()) * 40) for n in range(500)]
    path, content = tmp_path / name, b"\n".join(lines)
    packed = {".gz": gzip.compress(content), ".zst": zstandard.compress(content)}
    path.write_bytes(packed.get(path.suffix, content))
    wanted = import_job.prepare_import(project=factories.make_project(), path=path, choices=ImportOptions(), now=now)
    steps = import_job.run_import(wanted, checkpoint={}, by=None)
    results = [step.result for step in steps if isinstance(step, JobProgress) and step.result]
    assert {result["size"] for result in results} == {path.stat().st_size}
    read = [result["read"] for result in results]
    assert read == sorted(read)
    assert read[0] < read[-1] <= path.stat().st_size


def test_strict_import_of_a_bad_file_imports_nothing(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    job = run(request(project, write_lines(tmp_path, prm.make_line(), b'{"question": 1}'), now))
    assert job.state == JobState.FAILED
    assert "line 2, column 14: " in job.failure
    assert [line["line"] for line in job.result["report"]["bad_lines"]] == [2]
    assert not Problem.objects.exists()


def test_lenient_import_leaves_bad_lines_out_and_lists_them(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    job = run(
        request(
            project, write_lines(tmp_path, prm.make_line(), b"{", prm.make_line(labeler="ben")), now, is_lenient=True
        )
    )
    assert job.state == JobState.DONE
    assert [line["line"] for line in job.result["report"]["bad_lines"]] == [2]
    assert scan.bad_lines_path(job.pk).read_text().splitlines()[1].startswith("2,2,")
    assert Submission.objects.count() == 2


@pytest.mark.fault
def test_import_continues_after_an_interruption(tmp_path: Path, now: dt.datetime) -> None:
    """Identical records are numbered by their earlier occurrences."""
    project = factories.make_project()
    lines = [prm.make_line(labeler=None)] * 1200
    arguments = import_job.prepare_import(
        project=project, path=write_lines(tmp_path, *lines), choices=ImportOptions(), now=now
    )
    last = JobProgress(0, checkpoint={}, result={})
    for _ in range(3):  # each time the process dies after its second chunk
        n_written = 0
        for chunk in import_job.run_import(arguments, **resume(last)):
            if callable(chunk):
                last = chunk(now)
                n_written += 1
            if n_written == 2:
                break
    for chunk in import_job.run_import(arguments, **resume(last)):
        if callable(chunk):
            last = chunk(now)
    assert Submission.objects.count() == 1200
    assert import_job.report_from_progress(last).submissions_added == 1200


def test_import_queues_unrated_traces(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project(reserve_problem_share=0.4, overlap=3)
    run(request(project, write_lines(tmp_path, *map(native, range(30))), now))
    entries = QueueEntry.objects.filter(lane__project=project)
    assert entries.count() == 30
    assert set(entries.values_list("slots_left", flat=True)) == {3}
    for arm, is_reserve in (("reserve", True), ("uniform", False)):
        found = entries.filter(lane__arm=arm).values_list("trace__problem__is_reserve", flat=True)
        assert set(found) == {is_reserve}


@pytest.mark.parametrize(
    ("chosen", "steps", "expected"),
    [
        ("", [{"kind": "action", "text": "look()"}, {"kind": "observation", "text": "1", "rateable": False}], "agents"),
        ("policy", [{"kind": "action", "text": "look()"}], "policy"),
    ],
)
def test_first_import_chooses_the_rules_unless_a_lead_has(
    chosen: str, steps: list[dict[str, Any]], expected: str, tmp_path: Path, now: dt.datetime
) -> None:
    rules = rating_rules.copy_template(chosen) if chosen else {}
    project = factories.make_project(rating_rules=rules)
    line = {"problem": "Find it.", "steps": steps}
    run(request(project, write_lines(tmp_path, json.dumps(line).encode()), now))
    project.refresh_from_db()
    assert project.rating_rules == rating_rules.copy_template(expected)


def test_import_does_not_queue_rated_traces(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    run(request(project, write_lines(tmp_path, prm.make_line()), now))
    assert not QueueEntry.objects.filter(lane__project=project).exists()


def test_import_makes_gold_of_ratings(tmp_path: Path, now: dt.datetime) -> None:
    """One trace, three submissions: two find errors at different steps, one gave up. No additional label is"
    " requested."""
    project = factories.make_project()
    lines = [
        prm.make_line(labeler="ann"),
        prm.make_line(labeler="ben", steps=[prm.make_step("2 + 2 = 4", -1, "not of the trace", chosen=None)]),
        prm.make_line(labeler="cy", steps=[], finish_reason="give_up"),
    ]
    job = run(request(project, write_lines(tmp_path, *lines), now, labels="gold"))
    gold = Gold.objects.get()
    assert gold.accepted_first_errors == [1, 0]
    assert sorted(gold.ratings.values_list("option__text", "rating")) == [
        ("4 + 2 = 7", -1)
    ]  # the raters differ on the first step
    assert job.result["report"]["not_gold"] == 1
    assert not Submission.objects.exists()
    assert list(QueueEntry.objects.values_list("lane__arm", flat=True)) == ["gold"]
    run(request(project, write_lines(tmp_path, *lines), now, labels="gold"))
    assert Gold.objects.count() == 1


@pytest.mark.parametrize("labels", ["gold", "human"])
def test_import_refuses_machine_ratings_as_gold_or_human(
    shared_data: Path, tmp_path: Path, now: dt.datetime, labels: str
) -> None:
    job = request(
        factories.make_project(), shared_data / "other/math_shepherd_sample.jsonl", now, labels=labels, labels_by="us"
    )
    assert run(job).state == JobState.FAILED
    assert job.result["report"]["bad"] == 7
    assert not Trace.objects.exists()


@pytest.mark.parametrize(
    ("labels", "kind", "machine"),
    [("human", "imported", ""), ("monte_carlo", "machine", "Monte Carlo: us"), ("judge", "machine", "judge: us")],
)
def test_import_attributes_ratings_to_the_named_labeler(
    tmp_path: Path, now: dt.datetime, labels: str, kind: str, machine: str
) -> None:
    project = factories.make_project()
    path = write_lines(tmp_path, prm.make_line(labeler="ann"), prm.make_line(labeler=None))
    assert run(request(project, path, now, labels=labels, labels_by="us")).state == JobState.DONE
    rater = Rater.objects.get()
    assert (rater.kind, rater.machine) == (kind, machine)
    assert machine or rater.labeler == "us"
    assert (Source.objects.get().labels_are, Source.objects.get().labels_by) == (labels, "us")


def test_import_requires_the_name_of_the_labeler(tmp_path: Path, now: dt.datetime) -> None:
    with pytest.raises(scan.LabelerNotNamed):
        request(factories.make_project(), write_lines(tmp_path, native(1)), now, labels="judge", labels_by=" ")


def test_benchmark_import_lists_its_problems_and_queues_nothing(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    run(request(project, write_lines(tmp_path, native(1), native(2)), now))
    assert QueueEntry.objects.count() == 2
    job = run(request(project, write_lines(tmp_path, native(2), native(3), name="b"), now, purpose="benchmark"))
    assert job.result["report"]["benchmark_problems"] == BenchmarkProblem.objects.count() == 2
    assert QueueEntry.objects.count() == 2
    digests = [digest_normalized(f"what is {number}") for number in (1, 2, 3)]
    assert benchmarks.find_lists(digests) == {digests[1]: ("b",), digests[2]: ("b",)}


PRIVATE = json.dumps({"problem": "Mail jo@example.org", "steps": ["To jo@example.org"], "labels": [1]}).encode()


def test_import_counts_masks_or_refuses_private_data(tmp_path: Path, now: dt.datetime) -> None:
    path = write_lines(tmp_path, native(1), PRIVATE)
    projects = {how: factories.make_project() for how in ("count", "mask", "refuse")}
    jobs = {how: run(request(project, path, now, private=how)) for how, project in projects.items()}
    assert "line 2, column 1: " in jobs["refuse"].failure
    for how, text in (("count", "Mail jo@example.org"), ("mask", "Mail [e-mail]")):
        assert jobs[how].result["report"]["private"] == {"email": 2}
        trace = Trace.objects.get(project=projects[how], problem__text=text)
        assert trace.steps.get().options.count() == 1  # the rating matches the masked option


def test_import_reports_similar_problems(tmp_path: Path, now: dt.datetime) -> None:
    long = "A train leaves at noon and goes {} miles an hour for two hours and then stops, and so how far did it go?"
    lines = [json.dumps({"problem": long.format(n), "steps": ["a"]}).encode() for n in (50, 60)]
    job = run(request(factories.make_project(), write_lines(tmp_path, *lines, native(1)), now))
    near = job.result["report"]["near_duplicates"]
    assert (near["problems"], near["groups"]) == (2, 1)
    assert near["examples"][0] == [long.format(50), long.format(60)]


@pytest.mark.parametrize(("name", "right", "with_error"), [("gsm8k", 200, 7), ("math", 500, 94)])
@pytest.mark.fault
def test_import_reports_right_answers_with_errors(
    shared_data: Path, now: dt.datetime, name: str, right: int, with_error: int
) -> None:
    """3.5 % and 18.8 %: errors that outcome labels cannot show."""
    job = run(request(factories.make_project(), shared_data / f"processbench/{name}.json", now))
    report = job.result["report"]
    assert (report["outcomes"]["right"], report["right_and_rated"]) == (right, right)
    assert report["right_with_error"] == with_error


@pytest.mark.fault
def test_import_report_matches_a_count_over_the_file(shared_data: Path, now: dt.datetime) -> None:
    """The report has the same numbers as a simple count over the file."""
    path = shared_data / "prm800k/phase1_train.reconstructed.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    steps = [step for line in lines for step in line["label"]["steps"]]
    rated = Counter(str(option["rating"]) for step in steps for option in step["completions"] or ())
    report = run(request(factories.make_project(), path, now)).result["report"]
    assert report["ratings"] == rated
    assert report["problems"] == len({line["question"]["problem"] for line in lines})
    assert report["written_steps"] == sum(step["human_completion"] is not None for step in steps)
    assert report["finish_reasons"] == Counter(str(line["label"]["finish_reason"]) for line in lines)
    assert (report["records"], report["labels_by"]) == (600, {"unknown": 600})


def import_traces(path: Path, *arguments: str) -> dict[str, Any]:
    """Import the file and return the report."""
    call_command("import_traces", str(path), "--project", "maths", *arguments, stdout=StringIO(), stderr=StringIO())
    return dict(Source.objects.get().report)


def test_import_traces_and_build_snapshot_reproduce_a_file(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path, prm.make_line(), prm.make_line(labeler="ben").replace(b": ", b":"), prm.make_line(labeler=None)
    )
    assert import_traces(path)["submissions_added"] == 3
    assert import_traces(path)["submissions_added"] == 0
    out = str(tmp_path / "out")
    call_command("build_snapshot", "--project", "maths", "--out", out, "--labeler-names", stdout=StringIO())
    (output,) = [each for each in (tmp_path / "out").rglob("*") if each.suffix == ".jsonl"]
    assert output.read_bytes() == path.read_bytes()


def test_import_traces_reads_real_files_twice(shared_data: Path) -> None:
    path = shared_data / "gsm8k/example_model_solutions.jsonl"
    assert import_traces(path)["problems_added"] == 150
    assert import_traces(path)["traces_added"] == 0
    assert Trace.objects.filter(is_right=True).exists()
    assert Source.objects.get().format == "gsm8k"


@pytest.mark.parametrize(
    ("content", "cause"),
    [(b'{"a": 1}\n', UnknownFormat), (prm.make_line() + b"\n{\n", import_job.FileHasBadLines)],
    ids=["unknown format", "bad line"],
)
def test_import_traces_refuses_a_bad_file(tmp_path: Path, content: bytes, cause: type[Exception]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(CommandError) as refused:
        import_traces(path)
    assert isinstance(refused.value.__cause__, cause)
    assert "\n" not in str(refused.value)
    assert not Problem.objects.exists()
