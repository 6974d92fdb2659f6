"""Sends the files of a snapshot elsewhere: to S3-compatible storage, or to a repository of the Hugging Face hub. Reads
rows, writes none here. The manifest goes last: where it lies, everything lies."""

from pathlib import Path
from typing import Any, Protocol

from exports import snapshots
from exports.models import Snapshot

LAST = "manifest.json"


class CannotSend(Exception):
    """The address is of no known kind, the packages are missing, or the other side refused. Says which."""


class Place(Protocol):
    """Where files can be put. Putting one again replaces it by the same."""

    def put(self, name: str, path: Path) -> None: ...


class ObjectStore:
    """A bucket and a prefix in it: `s3://bucket/prefix`. Keys come from the environment, as for every tool."""

    def __init__(self, address: str) -> None:
        try:
            from obstore import store as stores
        except ImportError as error:
            raise CannotSend("object stores need the extra packages: pip install 'stepmark[s3]'") from error
        scheme, _, rest = address.partition("://")
        bucket, _, self._prefix = rest.rstrip("/").partition("/")
        made: Any = stores.from_url
        self._store = made(f"{scheme}://{bucket}")

    def put(self, name: str, path: Path) -> None:
        self._store.put(f"{self._prefix}/{name}" if self._prefix else name, path)


class HubRepository:
    """A dataset repository of the hub: `hf://owner/name`. The token is HF_TOKEN's."""

    def __init__(self, address: str, api: Any = None) -> None:
        self._name = address.removeprefix("hf://").strip("/")
        if api is None:
            try:
                from huggingface_hub import HfApi
            except ImportError as error:
                raise CannotSend("the hub needs the extra packages: pip install 'stepmark[hf]'") from error
            api = HfApi()
        self._api = api
        self._api.create_repo(self._name, repo_type="dataset", private=True, exist_ok=True)

    def put(self, name: str, path: Path) -> None:
        self._api.upload_file(path_or_fileobj=str(path), path_in_repo=name, repo_id=self._name, repo_type="dataset")


def place_of(address: str) -> Place:
    if address.startswith("hf://"):
        return HubRepository(address)
    if address.startswith("s3://"):
        return ObjectStore(address)
    raise CannotSend(f"{address} is neither s3://bucket/prefix nor hf://owner/name.")


def send(snapshot: Snapshot, place: Place) -> list[str]:
    """Every file that the snapshot lists, the manifest last. Says what was sent; done twice it changes nothing."""
    names = sorted(snapshot.files.values_list("name", flat=True), key=lambda name: (name == LAST, name))
    for name in names:
        try:
            place.put(name, snapshots.folder(snapshot) / name)
        except Exception as error:  # each library has errors of its own; the person is told which file, and why
            raise CannotSend(
                f"{name}: {(str(error).strip().splitlines() or [type(error).__name__])[0][:300]}"
            ) from error
    return names
