"""A snapshot in an object store, spoken to by its protocol, and in a repository of the hub, by a faithful fake."""

import inspect
import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from exports import deliveries, snapshots
from exports.models import Snapshot
from tests.exports.test_snapshots import labelled, make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


class Hub:
    """The calls of the hub's own client that are used, with its arguments."""

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


def test_send_puts_every_file_into_the_store(store: Any, tmp_path: Path) -> None:
    project = labelled(2)
    options = ["--project", project.slug, "--out", str(tmp_path / "out"), "--format", "trl", "--to", "s3://sets/v1"]
    call_command("build_snapshot", *options, stdout=io.StringIO())
    made = Snapshot.objects.get()
    for file in made.files.all():
        assert bytes(store.get(f"v1/{file.name}").bytes()) == (snapshots.snapshot_folder(made) / file.name).read_bytes()


def test_send_puts_the_manifest_last_into_the_hub() -> None:
    made, hub = make(labelled(2), "trl"), Hub()
    hub.files = {"data/trl/train-00000-of-00002.jsonl": b"of an older one", ".gitattributes": b"the hub's own"}
    sent = list(deliveries.send_files(made, deliveries.HubRepository("hf://owner/name", hub)))
    assert sent[-1] == "manifest.json"
    assert hub.files["README.md"].startswith(b"---\n")
    assert set(hub.files) == {*made.files.values_list("name", flat=True), ".gitattributes"}
    assert hub.tags == [made.name]


def test_fake_hub_has_the_arguments_of_the_real_one() -> None:
    real = pytest.importorskip("huggingface_hub").HfApi
    for name in ("create_repo", "upload_file", "list_repo_files", "delete_files", "create_tag"):
        asked = set(inspect.signature(getattr(Hub, name)).parameters)
        assert asked <= set(inspect.signature(getattr(real, name)).parameters), name


def test_send_says_what_it_cannot() -> None:
    with pytest.raises(deliveries.DeliveryFailed, match="neither s3"):
        deliveries.open_target("ftp://x")
    made, hub = make(labelled(1), "trl"), Hub()
    (snapshots.snapshot_folder(made) / "README.md").unlink()
    with pytest.raises(deliveries.DeliveryFailed, match=r"README\.md"):
        list(deliveries.send_files(made, deliveries.HubRepository("hf://owner/name", hub)))
    assert "manifest.json" not in hub.files
