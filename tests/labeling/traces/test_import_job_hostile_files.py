"""Hostile files: every error has a place, no import is left half done, memory is bounded."""

import datetime as dt
import gzip
import json
import re
import resource
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats import catalog
from formats.input_files import UnreadableFile
from jobs import runner
from jobs.models import Job, JobState
from labeling.models import Option, Problem, Submission, Trace
from labeling.traces import import_job, import_preview, scan
from labeling.traces.scan import ImportOptions
from tests import factories
from tests.formats import prm800k_lines as prm

pytestmark = [pytest.mark.fault, pytest.mark.django_db]
PLACE = re.compile(r"line \d+, column \d+: \S")
GOOD = prm.make_line()


@pytest.fixture(autouse=True)
def _own_folder(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"


def nested(depth: int) -> bytes:
    return GOOD[:-1] + b', "extra": ' + b"[" * depth + b"]" * depth + b"}"


# By error: the bytes after one good line, and the place that the message begins with.
CORPUS = {
    "cut off": (GOOD[:-20], "line 2, column "),
    "not JSON": (b"hello", "line 2, column 1: "),
    "a wrong type": (GOOD.replace(b'"total_time": 21000', b'"total_time": "long"'), "line 2, column "),
    "a number out of range": (GOOD.replace(b"21000", b"9" * 30), "line 2, column "),
    "a rating off the scale": (GOOD.replace(b'"rating": -1', b'"rating": 7'), "line 2, column "),
    "NaN": (GOOD.replace(b"0.25", b"NaN"), "line 2, column "),
    "NUL, written": (GOOD.replace(b"2 + 2 = 4", b"2 \\u0000"), "line 2, column "),
    "NUL, unescaped": (GOOD.replace(b"2 + 2 = 4", b"2 \x00"), "line 2, column "),
    "half a surrogate pair": (GOOD.replace(b"2 + 2 = 4", b"2 \\ud83d"), "line 2, column "),
    "not UTF-8": (GOOD.replace(b"2 + 2 = 4", b"2 \xff"), "line 2, column "),
    "a key twice": (GOOD[:-1] + b', "generation": 1}', "line 2, column "),
    "a key twice in what is unknown": (GOOD[:-1] + b', "x": {"a": 1, "a": 2}}', "line 2, column "),
    "nested too deep": (nested(5000), "line 2, column "),
    "more after the record": (GOOD + b" {}", "line 2, column "),
    "an array in between": (b"[1, 2]", "line 2, column 1"),
    "a chosen option that is not there": (
        GOOD.replace(b'"chosen_completion": 0', b'"chosen_completion": 9'),
        "line 2, column ",
    ),
    "an impossible time": (GOOD.replace(b"2022-11-06", b"2022-13-45"), "line 2, column "),
}


def import_file(path: Path, now: dt.datetime, **choices: Any) -> Job:
    job = import_job.request_import(
        project=factories.make_project(), path=path, choices=ImportOptions(**choices), by=None, now=now
    )
    runner.run_job(job.pk, import_job.chunks)
    job.refresh_from_db()
    return job


@pytest.mark.parametrize("name", CORPUS)
def test_strict_import_names_the_place_and_imports_nothing(name: str, tmp_path: Path, now: dt.datetime) -> None:
    line, beginning = CORPUS[name]
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + b"\n" + line + b"\n" + GOOD + b"\n")
    job = import_file(path, now)
    assert job.state == JobState.FAILED
    assert beginning in job.failure
    assert job.result["report"]["bad"] == 1
    assert PLACE.search(job.failure)
    assert not Problem.objects.exists()
    assert import_file(path, now, is_lenient=True).result["report"]["submissions_added"] == 2


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (b"\xef\xbb\xbf" + GOOD + b"\r\n" + GOOD + b"\r\n", 2),  # a byte order mark and Windows line ends
        (b"\n\n  \n" + GOOD, 1),
        (b"", 0),
    ],
)
def test_import_accepts_unusual_but_valid_files(content: bytes, records: int, tmp_path: Path, now: dt.datetime) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    job = import_file(path, now, format="prm800k")
    assert (job.state, job.result["report"]["records"]) == (JobState.DONE, records)


def test_an_endless_line_takes_little_memory(tmp_path: Path, now: dt.datetime) -> None:
    """The line is six times the limit; the file is sparse."""
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(GOOD + b"\n")
        file.truncate(200 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    job = import_file(path, now)
    assert "line 2, column 33554433: " in job.failure
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 120 * 1024


def test_import_of_a_changed_or_missing_file_imports_nothing(tmp_path: Path, now: dt.datetime) -> None:
    path = tmp_path / "a.jsonl"
    for change in (lambda: path.write_bytes(prm.make_line(labeler="ben") + b"\n"), path.unlink):
        path.write_bytes(GOOD + b"\n")
        job = import_job.request_import(
            project=factories.make_project(), path=path, choices=ImportOptions(), by=None, now=now
        )
        change()
        with pytest.raises(import_job.FileChanged):
            list(import_job.chunks(job))
        assert not Problem.objects.exists()


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zst", zstandard.ZstdCompressor().compress)])
def test_import_refuses_a_file_that_unpacks_to_too_much(
    ending: str, pack: Any, tmp_path: Path, now: dt.datetime
) -> None:
    path = tmp_path / f"a.jsonl.{ending}"
    path.write_bytes(pack(GOOD + b"\n" + b" " * (160 << 20)))
    job = import_file(path, now, format="prm800k")
    assert job.state == JobState.FAILED
    assert "300" in job.failure or "33,554,432" in job.failure
    path.write_bytes(pack(GOOD * 100)[:200])
    assert import_file(path, now, format="prm800k").state == JobState.FAILED
    assert not Problem.objects.exists()


SAMPLES = [
    GOOD,
    json.dumps({"problem": "p", "steps": ["a", "b"], "label": 1, "id": "x"}).encode(),
    json.dumps({"prompt": "p", "completions": ["a"], "labels": [True]}).encode(),
    json.dumps({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}).encode(),
    json.dumps({"problem": "p", "text": "One. Two.\n\nThree."}).encode(),
    json.dumps({"question": "q", "m": {"solution": "a\nA: 1", "is_correct": True}}).encode(),
    json.dumps({"trajectory": [{"action": "ls", "observation": "x", "thought": "t"}], "environment": "e"}).encode(),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Good records with bytes removed, repeated or inserted, which a reader trusts more than noise."""
    text = bytearray(b"\n".join(draw(st.lists(st.sampled_from(SAMPLES), min_size=1, max_size=3))) + b"\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 6))] = draw(
            st.sampled_from([b"", b'"', b"{", b"}", b"[", b"\\", b"\n", b"\0", b"\xff", b"null", b"1e999", b"-", b":,"])
            | st.binary(max_size=4)
        )
    return bytes(text)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=damaged() | st.binary(max_size=60), name=st.sampled_from(["a.jsonl", "a.csv", "a.parquet", "a.json.gz"]))
def test_preview_handles_any_file(tmp_path: Path, content: bytes, name: str) -> None:
    """The result is records, bad lines with places, or one of two exceptions."""
    path = tmp_path / name
    path.write_bytes(content)
    for format in ("auto", *catalog.INPUT_FORMATS):
        try:
            named = scan.resolve_format(path, ImportOptions(format=format))
            preview = import_preview.preview_file(path, ImportOptions(format=named))
        except (catalog.UnknownFormat, UnreadableFile):
            continue
        assert all(line.line >= 1 and line.column >= 1 and line.reason for line in preview.report.bad_lines)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=damaged())
def test_import_is_all_or_nothing(tmp_path: Path, now: dt.datetime, content: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    counts = [model.objects.count() for model in (Problem, Trace, Option, Submission)]
    try:
        job = import_file(path, now)
    except (catalog.UnknownFormat, UnreadableFile):
        job = None
    if job is None or job.state != JobState.DONE:
        assert job is None or job.result["report"]["bad"], job.failure
        assert counts == [model.objects.count() for model in (Problem, Trace, Option, Submission)]
    else:
        assert job.result["report"]["bad"] == 0
