"""Deliveries to an object store, by its protocol, and to the hub, with a fake of its client."""

import inspect
import io
import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from exports import deliveries, snapshots
from exports.deliveries import DeliveryStatus
from exports.models import Delivery, Snapshot
from exports.orders import InvalidOrder
from exports.tasks import deliver
from jobs.models import Job
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, make_labeled_project, order_snapshot, read_file

pytestmark = [pytest.mark.django_db, pytest.mark.fault]


class FakeHub:
    """The methods of the hub's client that are used, with the same arguments."""

    def __init__(self) -> None:
        self.repositories: list[str] = []
        self.files: dict[str, bytes] = {}
        self.tags: list[str] = []

    def create_repo(self, repo_id: str, *, repo_type: str, private: bool, exist_ok: bool) -> None:
        assert (repo_type, private, exist_ok) == ("dataset", True, True)
        self.repositories.append(repo_id)

    def upload_file(self, *, path_or_fileobj: str, path_in_repo: str, repo_id: str, repo_type: str) -> None:
        assert repo_id in self.repositories
        assert repo_type == "dataset"
        self.files[path_in_repo] = Path(path_or_fileobj).read_bytes()

    def list_repo_files(self, repo_id: str, *, repo_type: str) -> list[str]:
        return list(self.files)

    def delete_files(self, repo_id: str, delete_patterns: list[str], *, repo_type: str) -> None:
        for name in delete_patterns:
            del self.files[name]

    def create_tag(self, repo_id: str, *, tag: str, repo_type: str, exist_ok: bool) -> None:
        self.tags.append(tag)


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


def test_fake_hub_has_the_arguments_of_the_real_one() -> None:
    real = pytest.importorskip("huggingface_hub").HfApi
    for name in ("create_repo", "upload_file", "list_repo_files", "delete_files", "create_tag"):
        arguments = set(inspect.signature(getattr(FakeHub, name)).parameters)
        assert arguments <= set(inspect.signature(getattr(real, name)).parameters), name


def test_command_uploads_every_file_to_the_store(store: Any, tmp_path: Path) -> None:
    project = make_labeled_project(2)
    options = ["--project", project.slug, "--out", str(tmp_path / "out"), "--format", "trl", "--to", "s3://sets/v1"]
    call_command("build_snapshot", *options, stdout=io.StringIO())
    snapshot = Snapshot.objects.get()
    for file in snapshot.files.all():
        assert bytes(store.get(f"v1/{file.name}").bytes()) == read_file(snapshot, file.name)


def test_hub_upload_replaces_older_data_and_ends_with_the_manifest() -> None:
    snapshot, hub = build_snapshot(make_labeled_project(2), "trl"), FakeHub()
    hub.files = {"data/trl/train-00000-of-00002.jsonl": b"of an older one", ".gitattributes": b"the hub's own"}
    names = list(deliveries.send_files(snapshot, deliveries.HubRepository("hf://owner/name", hub)))
    assert names[-1] == "manifest.json"
    assert hub.files["README.md"].startswith(b"---\n")
    assert set(hub.files) == {*snapshot.files.values_list("name", flat=True), ".gitattributes"}
    assert hub.tags == [snapshot.name]


@pytest.mark.parametrize("address", ["ftp://x", ""])
def test_unknown_address_is_refused(address: str) -> None:
    with pytest.raises(deliveries.DeliveryFailed):
        deliveries.open_target(address)


def test_missing_file_stops_the_upload_before_the_manifest() -> None:
    snapshot, hub = build_snapshot(make_labeled_project(1), "trl"), FakeHub()
    (snapshots.snapshot_folder(snapshot) / "README.md").unlink()
    with pytest.raises(deliveries.DeliveryFailed, match=r"README\.md"):
        list(deliveries.send_files(snapshot, deliveries.HubRepository("hf://owner/name", hub)))
    assert "manifest.json" not in hub.files
