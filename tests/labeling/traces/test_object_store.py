"""Objects of a store, by the real protocol from a server on loopback."""

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
from labeling.traces import import_job, object_store, uploads
from labeling.traces.import_job import ImportOptions
from tests import factories
from tests.formats import prm800k_lines as prm

pytestmark = pytest.mark.django_db


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
    """Puts objects into the store; a bucket must be made first."""
    import urllib.request

    from obstore.store import from_url

    settings.DATA_DIR = tmp_path / "data"
    told = {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "ENDPOINT_URL": server, "REGION": "us-east-1"}
    for name, value in {**told, "ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    urllib.request.urlopen(urllib.request.Request(f"{server}/traces", method="PUT"), timeout=10).close()
    store = from_url("s3://traces")
    return lambda name, content: store.put(name, content)


def run(job: Job) -> Job:
    runner.run_job(job.pk, import_job.chunks)
    job.refresh_from_db()
    return job


def ask(address: str, now: dt.datetime) -> Job:
    project = factories.make_project()
    return run(
        import_job.request_import_from_store(
            project=project, address=address, choices=ImportOptions(), by=None, now=now
        )
    )


def test_bring_in_from_a_store(put: Any, now: dt.datetime) -> None:
    put("in/a.jsonl", prm.make_line() + b"\n")
    job = ask("s3://traces/in/a.jsonl", now)
    assert job.state == JobState.DONE, job.failure
    source = Source.objects.get()
    assert (source.name, source.format, job.result["source"]) == ("a.jsonl", "prm800k", source.pk)
    assert job.result["fetched"] == job.result["size"] == len(prm.make_line()) + 1
    assert source.report["submissions_added"] == 1
    assert list(uploads.uploads_folder().rglob("*.jsonl")) == []  # it is in: nobody needs the copy


def test_bring_in_from_a_store_says_what_is_not_there(put: Any, now: dt.datetime) -> None:
    for address in ("s3://traces/nothing.jsonl", "s3://nobody/a.jsonl"):
        job = ask(address, now)
        assert job.state == JobState.FAILED
        assert job.failure.startswith(f"{address}: ")
    assert not Trace.objects.exists()


def test_fetch_again_only_what_has_changed(put: Any) -> None:
    def fetch() -> tuple[Path, int]:
        fetching_it, signs = object_store.fetch_object("s3://traces/b.jsonl"), 0
        while True:
            try:
                next(fetching_it)
                signs += 1
            except StopIteration as end:
                return end.value, signs

    put("b.jsonl", b"one")
    first, signs = fetch()
    assert (first.read_bytes(), signs) == (b"one", 1)
    assert fetch() == (first, 0)
    put("b.jsonl", b"other")
    assert fetch()[0].read_bytes() == b"other"


def test_fetch_leaves_nothing_half(put: Any) -> None:
    put("big.jsonl", b"x" * (2 * object_store.PIECE_BYTES + 1))
    fetching_it = object_store.fetch_object("s3://traces/big.jsonl")
    next(fetching_it)
    fetching_it.close()
    assert [path for path in uploads.uploads_folder().rglob("*") if path.is_file()] == []


def test_beginning_tells_whether_it_is_all(put: Any) -> None:
    put("c.jsonl", b"0123456789")
    assert object_store.read_beginning("s3://traces/c.jsonl", size=4) == (b"0123", False)
    assert object_store.read_beginning("s3://traces/c.jsonl", size=10) == (b"0123456789", True)
    with pytest.raises(input_files.UnreadableFile):
        object_store.read_beginning("s3://traces/none", size=4)


def test_import_traces_takes_an_address(put: Any) -> None:
    put("d.jsonl", prm.make_line() + b"\n")
    out = StringIO()
    call_command("import_traces", "s3://traces/d.jsonl", "--project", "maths", stdout=out)
    assert "1  new submissions" in out.getvalue()
