"""Snapshots over HTTP: order, progress, download and access."""

import datetime as dt
import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.urls import reverse

from exports import orders, snapshots
from exports.models import Snapshot
from exports.tasks import build_shard, finish, prepare
from tests import factories
from tests.api import api_clients
from tests.labeling.quality import submitted_work
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    for _ in range(3):
        submitted_work.submit_trace(factories.make_rater(cast.project), factories.make_trace(cast.project), [1, 1, -1])
    return cast


def order(program: Client, cast: Personas, **said: Any) -> Any:
    address = reverse("api:snapshots", args=[cast.project.slug])
    return program.post(address, {"formats": ["prm800k"], **said}, content_type="application/json")


def build(name: str) -> None:
    from jobs.models import Job

    made = Snapshot.objects.get(name=name)
    for kind, task in ((snapshots.PREPARE, prepare), (snapshots.BUILD, build_shard), (snapshots.FINISH, finish)):
        for job in Job.objects.filter(kind=kind, subject=snapshots.job_subject(made)):
            task(job.pk)


def test_time_filters_need_a_time_zone(cast: Personas) -> None:
    program, moments = api_clients.make_client(cast.engineer), {"submitted_from": "2026-01-01T00:00:00Z"}
    assert order(program, cast, name="since", filters=moments).status_code == 202
    made = Snapshot.objects.get(name="since")
    assert orders.load_order(made).filters.submitted_from == dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    build("since")
    for odd in ("2026-01-01T00:00:00", "2026-01-01", 0, "today"):
        refused = order(program, cast, name="x", filters={"submitted_until": odd})
        assert refused.status_code == 422
        assert "submitted_until" in api_clients.problem_detail(refused)
    for odd in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"):
        refused = order(program, cast, name="x", filters={"submitted_until": odd})
        assert (refused.status_code, bool(api_clients.problem_detail(refused))) == (422, True)


def test_agreeing_machines_are_known(cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    names = [factories.make_machine_rater(cast.project, name).machine for name in ("judge: c", "Monte Carlo: m")]
    assert order(program, cast, name="agreed", filters={"agreeing_machines": names}).status_code == 202
    assert order(program, cast, name="x", filters={"agreeing_machines": [*names, "nobody"]}).status_code == 422


@pytest.mark.parametrize("odd", [{"filtrs": {}}, {"purpos": "training"}, {"rule": {"neutrl": "drop"}}])
def test_unknown_keys_of_an_order_are_refused(cast: Personas, odd: dict[str, Any]) -> None:
    refused = order(api_clients.make_client(cast.engineer), cast, name="x", **odd)
    assert refused.status_code == 422
    assert not Snapshot.objects.exists()


def test_unknown_keys_of_a_stored_order_are_refused(cast: Personas) -> None:
    order(api_clients.make_client(cast.engineer), cast, name="x")
    made = Snapshot.objects.get()
    made.order["filtrs"] = {}
    with pytest.raises(msgspec.ValidationError, match="filtrs"):
        orders.load_order(made)


def test_snapshot_is_ordered_polled_and_downloaded(cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    ordered = order(program, cast, name="night-7")
    assert (ordered.status_code, ordered.json()["state"]) == (202, "building")
    build("night-7")
    built = program.get(ordered["Location"]).json()
    assert built["state"] == "built"
    [data] = [each for each in built["files"] if each["format"] == "prm800k"]
    address = reverse("api:file", args=[cast.project.slug, "night-7", data["name"]])
    whole = program.get(address).getvalue()
    assert hashlib.sha256(whole).hexdigest() == data["sha256"]
    assert len(whole.splitlines()) == data["rows"] == 3
    assert all(json.loads(line)["label"]["finish_reason"] == "found_error" for line in whole.splitlines())
    part = program.get(address, headers={"Range": "bytes=10-"})
    assert (part.status_code, part.getvalue()) == (206, whole[10:])
    assert program.get(address, headers={"If-None-Match": part["ETag"]}).status_code == 304
    assert [each["name"] for each in program.get(reverse("api:snapshots", args=[cast.project.slug])).json()] == [
        "night-7"
    ]


@pytest.mark.parametrize(
    ("options", "status", "fields"),
    [
        ({"formats": ["xml"]}, 422, ["formats"]),
        ({"purpose": "training", "taken_in": ["gold"]}, 422, []),
        ({"validation": 0.6, "test": 0.6}, 422, []),
        ({"filters": {"domains": 7}}, 422, []),
        ({"name": "taken"}, 409, []),
    ],
)
def test_invalid_order_is_refused(options: dict[str, Any], status: int, fields: list[str], cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    assert order(program, cast, name="taken").status_code == 202
    refused = order(program, cast, **options)
    assert refused.status_code == status
    assert api_clients.problem_detail(refused)
    assert list(refused.json().get("errors", [])) == fields
    assert Snapshot.objects.count() == 1


def test_canceled_snapshot_has_no_files(cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    ordered = order(program, cast, name="night-7")
    assert program.delete(ordered["Location"]).json()["state"] == "cancelled"
    assert program.get(reverse("api:file", args=[cast.project.slug, "night-7", "README.md"])).status_code == 404


@pytest.mark.parametrize(("person", "status"), [("stranger", 404), ("annotator", 403), ("reviewer", 403)])
def test_snapshots_need_the_role_and_scope(person: str, status: int, cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    ordered = order(program, cast, name="night-7")
    build("night-7")
    other = api_clients.make_client(getattr(cast, person))
    address = reverse("api:file", args=[cast.project.slug, "night-7", "README.md"])
    assert program.get(address).status_code == 200
    assert order(other, cast).status_code == other.get(ordered["Location"]).status_code == status
    assert other.get(address).status_code == status
    assert api_clients.make_client(cast.engineer, "read").get(address).status_code == 403
    assert program.get(reverse("api:file", args=["next-door", "night-7", "README.md"])).status_code == 404
