"""A snapshot that a lead sends to a place that is set up: by a job that goes on where it was refused."""

import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from exports import deliveries, snapshots
from exports.models import Delivery, Snapshot
from exports.orders import InvalidOrder, SnapshotOrder
from exports.tasks import deliver
from jobs.models import Job
from tests import factories
from tests.exports.test_deliveries_sending import Hub
from tests.exports.test_snapshots import labelled, make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub()
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: made)
    return made


def send(made: Snapshot, destination: str) -> deliveries.DeliveryStatus:
    deliveries.request_delivery(snapshot=made, destination=destination, by=None, now=factories.NOW)
    (job,) = Job.objects.filter(kind=deliveries.DELIVER)
    deliver(job.pk)
    (found,) = deliveries.list_delivery_statuses(made)
    return found


def test_delivery_goes_into_a_folder_of_its_own_and_once(store: Any, settings: Any) -> None:
    settings.DESTINATIONS = {"lake": "s3://sets/stepmark/"}
    made = make(labelled(2), "trl")
    found = send(made, "lake")
    assert (found.state, found.failure) == ("done", "")
    address = f"stepmark/{made.project.slug}/{made.name}"
    assert found.delivery.address == f"s3://sets/{address}"
    for file in made.files.all():
        there = bytes(store.get(f"{address}/{file.name}").bytes())
        assert there == (snapshots.snapshot_folder(made) / file.name).read_bytes()
    deliveries.request_delivery(snapshot=made, destination="lake", by=None, now=factories.NOW)
    assert Job.objects.filter(kind=deliveries.DELIVER).count() == 1


def test_delivery_that_is_refused_says_why_and_goes_on_when_it_is_tried_again(
    store: Any,
    settings: Any,
) -> None:
    settings.DESTINATIONS = {"lake": "s3://later"}
    made = make(labelled(2), "trl")
    found = send(made, "lake")
    assert (found.state, found.done, found.total) == ("failed", 0, made.files.count())
    assert found.failure.startswith("README.md: ")
    assert "sending.py" not in found.failure
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/later", method="PUT"), timeout=10).close()
    assert send(made, "lake").state == "done"


def test_delivery_goes_on_behind_the_files_that_are_there(hub: Hub, settings: Any) -> None:
    """A file is missing at first, as where a disk fails: what was sent before is not sent again."""
    settings.DESTINATIONS = {"hub": "hf://our-team"}
    made = make(labelled(2), "trl")
    last = snapshots.snapshot_folder(made) / "manifest.json"
    kept = last.read_bytes()
    last.unlink()
    found = send(made, "hub")
    n = made.files.count()
    assert (found.state, found.done, found.total) == ("failed", n - 1, n)
    before = dict(hub.files)
    hub.files.clear()
    last.write_bytes(kept)
    assert send(made, "hub").state == "done"
    assert set(hub.files) == {"manifest.json"}
    assert {*before, *hub.files} == set(made.files.values_list("name", flat=True))
    assert hub.repositories[-1] == f"our-team/{made.name}"


def test_order_sends_what_it_built_and_knows_only_what_is_set_up(hub: Hub, settings: Any) -> None:
    settings.DESTINATIONS = {"hub": "hf://our-team/ratings"}
    project = labelled(1)
    wanted = SnapshotOrder(formats=["trl"], deliver_to=["lake"])
    with pytest.raises(InvalidOrder, match="no destination called lake"):
        snapshots.order_snapshot(
            project=project, name="x", purpose="archive", wanted=wanted, by=None, now=factories.NOW
        )
    made = make(project, "trl", deliver_to=["hub"])
    assert Delivery.objects.get().address == "hf://our-team/ratings"
    deliver(Job.objects.get(kind=deliveries.DELIVER).pk)
    assert "manifest.json" in hub.files
    with pytest.raises(deliveries.DeliveryFailed):
        deliveries.open_target("")
    assert deliveries.list_delivery_statuses(made)[0].delivery.delivered_at is not None
