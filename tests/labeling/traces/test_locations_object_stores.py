"""Objects in a store, from a real S3 server on localhost."""

import datetime as dt
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from formats import input_files
from jobs import runner
from jobs.models import Job, JobState
from labeling.models import Source, Trace
from labeling.traces import import_job, locations
from labeling.traces.scan import ImportOptions
from tests import factories
from tests.formats import prm800k_lines as prm

pytestmark = [pytest.mark.django_db, pytest.mark.fault]  # a server that speaks the protocol


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def put(server: str, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that stores an object. The bucket is created first."""
    import urllib.request

    from obstore.store import from_url

    settings.DATA_DIR = tmp_path / "data"
    variables = {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "ENDPOINT_URL": server, "REGION": "us-east-1"}
    for name, value in {**variables, "ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    urllib.request.urlopen(urllib.request.Request(f"{server}/traces", method="PUT"), timeout=10).close()
    store = from_url("s3://traces")
    return lambda name, content: store.put(name, content)


def run(job: Job) -> Job:
    runner.run_job(job.pk, import_job.chunks)
    job.refresh_from_db()
    return job


def import_object(address: str, now: dt.datetime) -> Job:
    project = factories.make_project()
    return run(
        import_job.request_import_from_store(
            project=project, address=address, choices=ImportOptions(), by=None, now=now
        )
    )


def test_import_from_a_store(put: Any, now: dt.datetime) -> None:
    put("in/a.jsonl", prm.make_line() + b"\n")
    job = import_object("s3://traces/in/a.jsonl", now)
    assert job.state == JobState.DONE, job.failure
    source = Source.objects.get()
    assert (source.name, source.format, job.result["source"]) == ("a.jsonl", "prm800k", source.pk)
    assert job.result["fetched"] == job.result["size"] == len(prm.make_line()) + 1
    assert source.report["submissions_added"] == 1
    assert list(locations.uploads_folder().rglob("*.jsonl")) == []  # the local copy is deleted


def test_import_of_a_missing_object_fails_with_its_address(put: Any, now: dt.datetime) -> None:
    for address in ("s3://traces/nothing.jsonl", "s3://nobody/a.jsonl"):
        job = import_object(address, now)
        assert job.state == JobState.FAILED
        assert job.failure.startswith(f"{address}: ")
    assert not Trace.objects.exists()


def test_fetch_downloads_again_only_after_a_change(put: Any) -> None:
    def fetch() -> tuple[Path, int]:
        download, n_progress = locations.fetch_object("s3://traces/b.jsonl"), 0
        while True:
            try:
                next(download)
                n_progress += 1
            except StopIteration as end:
                return end.value, n_progress

    put("b.jsonl", b"one")
    first, n_progress = fetch()
    assert (first.read_bytes(), n_progress) == (b"one", 1)
    assert fetch() == (first, 0)
    put("b.jsonl", b"other")
    assert fetch()[0].read_bytes() == b"other"


def test_interrupted_fetch_leaves_no_file(put: Any) -> None:
    put("big.jsonl", b"x" * (2 * locations.PIECE_BYTES + 1))
    download = locations.fetch_object("s3://traces/big.jsonl")
    next(download)
    download.close()
    assert [path for path in locations.uploads_folder().rglob("*") if path.is_file()] == []


def test_beginning_says_whether_it_is_the_whole_object(put: Any) -> None:
    put("c.jsonl", b"0123456789")
    assert locations.read_beginning("s3://traces/c.jsonl", size=4) == (b"0123", False)
    assert locations.read_beginning("s3://traces/c.jsonl", size=10) == (b"0123456789", True)
    with pytest.raises(input_files.UnreadableFile):
        locations.read_beginning("s3://traces/none", size=4)


def test_import_traces_accepts_an_address(put: Any) -> None:
    put("d.jsonl", prm.make_line() + b"\n")
    call_command("import_traces", "s3://traces/d.jsonl", "--project", "maths", stdout=StringIO())
    assert Source.objects.get().report["submissions_added"] == 1
