"""Uploads to an object store, by its protocol, and to the hub, with a fake of its client."""

import inspect
import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from exports import deliveries, destinations, snapshots
from exports.models import Snapshot
from tests.exports.snapshot_builder import build_snapshot, make_labeled_project, read_file

pytestmark = pytest.mark.django_db


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
    names = list(deliveries.send_files(snapshot, destinations.HubRepository("hf://owner/name", hub)))
    assert names[-1] == "manifest.json"
    assert hub.files["README.md"].startswith(b"---\n")
    assert set(hub.files) == {*snapshot.files.values_list("name", flat=True), ".gitattributes"}
    assert hub.tags == [snapshot.name]


@pytest.mark.parametrize("address", ["ftp://x", ""])
def test_unknown_address_is_refused(address: str) -> None:
    with pytest.raises(destinations.DeliveryFailed):
        destinations.open_target(address)


def test_missing_file_stops_the_upload_before_the_manifest() -> None:
    snapshot, hub = build_snapshot(make_labeled_project(1), "trl"), FakeHub()
    (snapshots.snapshot_folder(snapshot) / "README.md").unlink()
    with pytest.raises(destinations.DeliveryFailed, match=r"README\.md"):
        list(deliveries.send_files(snapshot, destinations.HubRepository("hf://owner/name", hub)))
    assert "manifest.json" not in hub.files
