"""Imports over HTTP. A failed request leaves no files behind."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs import runner
from jobs.models import Job
from labeling.models import Trace
from labeling.traces import import_job, locations
from tests.api import api_clients
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
GOOD = b"".join(
    json.dumps({"problem": f"What is {n} + 1?", "steps": ["Add one.", f"{n + 1}"]}).encode() + b"\n" for n in range(3)
)


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    return personas.cast


def address_of(cast: Personas) -> str:
    return reverse("api:imports", args=[cast.project.slug])


def send(
    program: Client, cast: Personas, body: bytes = GOOD, *, query: str = "", headers: dict[str, str] | None = None
) -> Any:
    return program.post(address_of(cast) + query, body, content_type="application/x-ndjson", headers=headers)


def kept(folder: Path) -> list[Path]:
    return [path for path in (folder / "imports").glob("*/*") if path.is_file()]


def test_import_is_requested_polled_and_finished(cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    asked = send(program, cast, query="?name=sums.jsonl&licence=MIT")
    assert asked.status_code == 202
    assert asked.json()["state"] == "queued"
    runner.run_job(asked.json()["id"], import_job.chunks)
    done = program.get(asked["Location"]).json()
    assert (done["state"], done["done"], done["total"]) == ("done", 3, 3)
    assert done["result"]["report"]["traces_added"] == 3
    source = Trace.objects.select_related("source")[0].source
    assert source
    assert (source.name, source.licence) == ("sums.jsonl", "MIT")
    [listed] = program.get(reverse("api:imports", args=[cast.project.slug])).json()
    assert listed == done


def test_bad_lines_are_reported_and_nothing_is_imported(cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    asked = send(program, cast, GOOD + b'{"problem": 1}\n{"problem\n').json()
    runner.run_job(asked["id"], import_job.chunks)
    failed = program.get(reverse("api:import", args=[cast.project.slug, asked["id"]])).json()
    assert failed["state"] == "failed"
    assert "2 of 5" in failed["failure"]
    assert [line["line"] for line in failed["result"]["report"]["bad_lines"]] == [4, 5]
    table = program.get(reverse("api:bad_lines", args=[cast.project.slug, asked["id"]]))
    assert table.getvalue().splitlines()[0] == b"line,column,reason"
    assert not Trace.objects.exists()


def test_idempotency_key_makes_a_request_repeatable(cast: Personas, folder: Path) -> None:
    program, key = api_clients.make_client(cast.engineer), {"Idempotency-Key": "night 7"}
    first, again = (send(program, cast, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    other = send(program, cast, GOOD + GOOD, headers=key)
    assert other.status_code == 409
    assert api_clients.problem_detail(other)
    assert Job.objects.count() == len(kept(folder)) == 1
    assert send(api_clients.make_client(cast.owner), cast, headers=key).status_code == 202  # keys are per user


@pytest.mark.parametrize(
    ("query", "body", "fields"),
    [
        ("?format=xml", GOOD, ["format"]),
        ("?labels=judge", GOOD, []),
        ("?lenient=true", GOOD, ["lenient"]),
        ("", b'{"a": 1}\n', []),
        ("?name=a.gz", GOOD, []),
    ],
)
def test_unreadable_upload_is_refused_and_deleted(
    query: str, body: bytes, fields: list[str], cast: Personas, folder: Path
) -> None:
    refused = send(api_clients.make_client(cast.engineer), cast, body, query=query)
    assert refused.status_code == 422
    assert api_clients.problem_detail(refused)
    assert list(refused.json().get("errors", [])) == fields
    assert kept(folder) == []
    assert not Job.objects.exists()


def test_body_needs_a_correct_length(cast: Personas, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = api_clients.make_client(cast.engineer)
    assert send(program, cast, b"").status_code == 411
    chunked = send(
        program, cast, headers={"Transfer-Encoding": "chunked"}
    )  # from a server that does not detect the end of chunked bodies
    assert (chunked.status_code, "Content-Length" in api_clients.problem_detail(chunked)) == (411, True)
    monkeypatch.setattr(locations, "MAX_UPLOAD_BYTES", 10)
    assert send(program, cast).status_code == 413
    assert kept(folder) == []


class TruncatedBody(io.BytesIO):
    """A chunked body whose last chunk is missing."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size) or self._end()

    def _end(self) -> bytes:
        raise OSError


@pytest.mark.parametrize(("body", "status"), [(io.BytesIO(GOOD), 202), (TruncatedBody(GOOD), 400)])
def test_chunked_body_is_accepted(body: io.BytesIO, status: int, cast: Personas, folder: Path) -> None:
    body.seek(0)
    given: dict[str, Any] = {"wsgi.input": body, "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    answer = api_clients.make_client(cast.engineer).generic("POST", address_of(cast), **given)
    assert answer.status_code == status
    assert [path.read_bytes() for path in kept(folder)] == ([GOOD] if status == 202 else [])


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE"])
def test_unsupported_method_is_refused(method: str, cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    refused = program.generic(method, address_of(cast))
    assert (refused.status_code, bool(api_clients.problem_detail(refused))) == (405, True)
    assert program.head(address_of(cast)).status_code == 200


def test_missing_project_is_not_found_and_no_model_is_named(cast: Personas) -> None:
    missing = api_clients.make_client(cast.engineer).get(reverse("api:imports", args=["nothing"]))
    assert missing.status_code == 404
    assert not any(model in api_clients.problem_detail(missing) for model in ("Membership", "Project", "query"))


@pytest.mark.parametrize(("person", "status"), [("stranger", 404), ("annotator", 403), ("reviewer", 403)])
def test_import_needs_the_role_and_scope(person: str, status: int, cast: Personas, folder: Path) -> None:
    assert send(api_clients.make_client(getattr(cast, person)), cast).status_code == status
    assert send(api_clients.make_client(cast.engineer, "read"), cast).status_code == 403
    assert kept(folder) == []


def test_import_can_be_canceled_and_is_visible_only_in_its_project(cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    asked = send(program, cast)
    assert program.delete(asked["Location"]).json()["state"] == "cancelled"
    assert api_clients.make_client(cast.owner).get(asked["Location"]).status_code == 200
    elsewhere = reverse("api:import", args=["next-door", asked.json()["id"]])
    assert api_clients.make_client(cast.neighbour).get(elsewhere).status_code == 404
