"""Deliveries to configured destinations, by a job that continues after a failure."""

import os
import urllib.request
from typing import Any

import pytest

from exports import deliveries, snapshots
from exports.deliveries import DeliveryStatus
from exports.models import Delivery, Snapshot
from exports.orders import InvalidOrder
from exports.tasks import deliver
from jobs.models import Job
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, make_labeled_project, order_snapshot, read_file
from tests.exports.test_destinations import FakeHub

pytestmark = pytest.mark.django_db


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    fake = FakeHub()
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: fake)
    return fake


def send(snapshot: Snapshot, destination: str) -> DeliveryStatus:
    deliveries.request_delivery(snapshot=snapshot, destination=destination, by=None, now=factories.NOW)
    (job,) = Job.objects.filter(kind=deliveries.DELIVER)
    deliver(job.pk)
    (status,) = deliveries.list_delivery_statuses(snapshot)
    return status


def test_snapshot_is_delivered_once_into_its_own_folder(store: Any, settings: Any) -> None:
    settings.DESTINATIONS = {"lake": "s3://sets/stepmark/"}
    snapshot = build_snapshot(make_labeled_project(2), "trl")
    status = send(snapshot, "lake")
    assert (status.state, status.failure) == ("done", "")
    folder = f"stepmark/{snapshot.project.slug}/{snapshot.name}"
    assert status.delivery.address == f"s3://sets/{folder}"
    for file in snapshot.files.all():
        assert bytes(store.get(f"{folder}/{file.name}").bytes()) == read_file(snapshot, file.name)
    deliveries.request_delivery(snapshot=snapshot, destination="lake", by=None, now=factories.NOW)
    assert Job.objects.filter(kind=deliveries.DELIVER).count() == 1


@pytest.mark.usefixtures("store")
def test_refused_delivery_reports_the_file_and_can_be_retried(settings: Any) -> None:
    settings.DESTINATIONS = {"lake": "s3://later"}
    snapshot = build_snapshot(make_labeled_project(2), "trl")
    status = send(snapshot, "lake")
    assert (status.state, status.done, status.total) == ("failed", 0, snapshot.files.count())
    assert status.failure.startswith("README.md: ")
    assert ".py" not in status.failure
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/later", method="PUT"), timeout=10).close()
    assert send(snapshot, "lake").state == "done"


def test_retry_continues_after_the_uploaded_files(hub: FakeHub, settings: Any) -> None:
    """The last file is missing at first, as after a disk failure."""
    settings.DESTINATIONS = {"hub": "hf://our-team"}
    snapshot = build_snapshot(make_labeled_project(2), "trl")
    manifest = snapshots.snapshot_folder(snapshot) / "manifest.json"
    content = manifest.read_bytes()
    manifest.unlink()
    status, n = send(snapshot, "hub"), snapshot.files.count()
    assert (status.state, status.done, status.total) == ("failed", n - 1, n)
    uploaded = dict(hub.files)
    hub.files.clear()
    manifest.write_bytes(content)
    assert send(snapshot, "hub").state == "done"
    assert set(hub.files) == {"manifest.json"}
    assert {*uploaded, *hub.files} == set(snapshot.files.values_list("name", flat=True))
    assert hub.repositories[-1] == f"our-team/{snapshot.name}"


def test_order_with_an_unknown_destination_is_refused(settings: Any) -> None:
    settings.DESTINATIONS = {"hub": "hf://our-team/ratings"}
    with pytest.raises(InvalidOrder) as refused:
        order_snapshot(make_labeled_project(1), "trl", deliver_to=["lake"])
    assert refused.value.code == "destination"


def test_order_delivers_what_it_built(hub: FakeHub, settings: Any) -> None:
    settings.DESTINATIONS = {"hub": "hf://our-team/ratings"}
    snapshot = build_snapshot(make_labeled_project(1), "trl", deliver_to=["hub"])
    assert Delivery.objects.get().address == "hf://our-team/ratings"
    deliver(Job.objects.get(kind=deliveries.DELIVER).pk)
    assert "manifest.json" in hub.files
    assert deliveries.list_delivery_statuses(snapshot)[0].delivery.delivered_at is not None
