"""Snapshot pages."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from events.models import Event
from exports import card, snapshots
from exports.models import Snapshot
from jobs.models import Job
from tests import factories
from tests.exports.snapshot_builder import build_snapshot
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import load_lines
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


@pytest.fixture
def cast(client: Client, personas: LoggedInPersonas) -> Personas:
    found = personas.cast
    load_lines(found.project, *(prm.make_line(labeler=name) for name in ("ann", "ben")))
    client.force_login(found.engineer)
    return found


def url(name_of_view: str, cast: Personas, **arguments: str) -> str:
    return reverse(f"dashboard:{name_of_view}", kwargs={"slug": cast.project.slug, **arguments})


ORDER = {
    "name": "first",
    "purpose": "archive",
    "formats": ["trl", "steps"],
    "ratings": "raters",
    "ending": "jsonl",
    "neutral": "drop",
    "human_steps": "positive",
    "generations": "5, none",
    "finish_reasons": ["found_error"],
    "contested": "in",
    "gold": "in",
    "min_raters": "0",
    "validation": "10",
    "test": "0",
}


def test_order_follows_the_form(client: Client, cast: Personas) -> None:
    answer = client.post(url("order_snapshot", cast), ORDER)
    assert answer.status_code == 302
    made = Snapshot.objects.get()
    assert made.name == "first"
    assert made.order["rule"]["neutral"] == "drop"
    assert made.order["rule"]["human_steps"] == "positive"
    assert made.order["validation"] == 0.1
    assert made.order["filters"]["generations"] == [5, None]
    assert made.order["filters"]["finish_reasons"] == ["found_error"]
    assert Job.objects.get().kind == "exports.prepare"
    page = client.get(answer["Location"]).content.decode()
    assert 'data-state="building"' in page
    assert url("snapshot_progress", cast, name="first") in page
    again = client.post(url("order_snapshot", cast), ORDER)
    assert again.status_code == 422
    assert again.context["form"].non_field_errors()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"name": "a b"}, {"formats": []}, {"taken_in": ["gold"]}, {"validation": "99"}, {"generations": "one"}),
        *({"generations": "9" * 40}, {"generations": "none, -1"}, {"submitted_from": "0001-01-01"}),
    ],
)
def test_invalid_order_is_refused(client: Client, cast: Personas, wrong: dict[str, Any]) -> None:
    assert client.post(url("order_snapshot", cast), {**ORDER, **wrong}).status_code == 422
    assert not Snapshot.objects.exists()


def test_order_names_machines_that_must_agree(client: Client, cast: Personas) -> None:
    machines = [factories.make_machine_rater(cast.project, name).labeler for name in ("judge: c", "Monte Carlo: m")]
    assert client.post(url("order_snapshot", cast), {**ORDER, "agreeing_machines": machines[:1]}).status_code == 422
    assert client.post(url("order_snapshot", cast), {**ORDER, "agreeing_machines": machines}).status_code == 302
    assert Snapshot.objects.get().order["filters"]["agreeing_machines"] == machines


@pytest.mark.fault
def test_snapshot_shows_its_files_and_sanitized_card(client: Client, cast: Personas) -> None:
    card.save_disclosure(
        project=cast.project, texts={"policy": "<script>x</script>"}, by=cast.lead, now=cast.project.created_at
    )
    made = build_snapshot(cast.project, "trl")
    page = client.get(url("snapshot", cast, name=made.name)).content.decode()
    assert page.count("<td>not stated</td>") > 1
    assert "<script>x" not in page
    for file in made.files.all():
        answer = client.get(url("download_snapshot_file", cast, name=made.name, file=file.name))
        assert answer["ETag"] == f'"{file.sha256}"'
        assert len(answer.getvalue()) == file.size
    taken = Event.objects.filter(what="snapshot.downloaded", project=cast.project.pk, by=cast.engineer.pk)
    assert sorted(event.detail["file"] for event in taken) == sorted(file.name for file in made.files.all())
    for name in ("../../secret_key", "data", "nothing"):
        assert client.get(url("download_snapshot_file", cast, name=made.name, file=name)).status_code == 404


def test_cancel_and_retry_act_on_the_jobs(client: Client, cast: Personas) -> None:
    client.post(url("order_snapshot", cast), ORDER)
    made = Snapshot.objects.get()
    Job.objects.update(state="failed", failure="The disk is full.", ended_at=made.asked_at)
    assert "The disk is full." in client.get(url("snapshot", cast, name="first")).content.decode()
    client.post(url("retry_snapshot", cast, name="first"))
    assert snapshots.load_snapshot_status(made).is_at_work
    client.post(url("cancel_snapshot", cast, name="first"))
    assert Job.objects.get().state == "cancelled"
    assert 'data-state="cancelled"' in client.get(url("snapshot", cast, name="first")).content.decode()


def test_disclosure_is_saved_and_counted(client: Client, cast: Personas) -> None:
    assert 'data-stated="0"' in client.get(url("snapshots", cast)).content.decode()
    answer = client.post(url("disclosure", cast), {"policy": " Qwen ", "pay": "by the hour"})
    assert answer.status_code == 302
    assert card.load_disclosure(cast.project)["policy"] == "Qwen"
    assert 'data-stated="1"' in client.get(url("snapshots", cast)).content.decode()


@pytest.mark.fault
def test_delivery_is_requested_once_and_can_be_retried(client: Client, cast: Personas, settings: Any) -> None:
    settings.DESTINATIONS = {"lake": "s3://sets"}
    made = build_snapshot(cast.project, "trl")
    address = url("deliver_snapshot", cast, name=made.name)
    page = client.get(url("snapshot", cast, name=made.name)).content.decode()
    assert f'action="{address}"' in page
    refused = client.post(address, {"destination": "s3://elsewhere"})
    assert refused.status_code == 422
    assert refused.context["refusal"]
    client.post(address, {"destination": "lake"})
    page = client.get(url("snapshot", cast, name=made.name)).content.decode()
    assert 'data-delivery="queued"' in page
    assert url("snapshot_progress", cast, name=made.name) in page
    Job.objects.filter(kind="exports.deliver").update(
        state="failed", failure="No such bucket.", done=1, total=4, ended_at=made.asked_at
    )
    page = client.get(url("snapshot", cast, name=made.name)).content.decode()
    assert 'data-delivery="failed"' in page
    assert "No such bucket." in page
    client.post(address, {"destination": "lake"})
    assert Job.objects.get(kind="exports.deliver").state == "queued"
