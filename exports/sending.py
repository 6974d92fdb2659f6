"""Sends the files of a snapshot elsewhere: to S3-compatible storage, or to a repository of the Hugging Face hub. Reads
rows, writes none here. The manifest goes last: where it lies, everything lies.

Keys stand in the environment, under the names that the tools of each store read.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from exports import snapshots
from exports.destinations import HUB, S3
from exports.models import Snapshot
from jobs.failures import Failed
from labeling.importing import fetching

LAST = "manifest.json"


class CannotSend(Failed):
    """The address is of no known kind, the packages are missing, or the other side refused. Says which."""


class Place(Protocol):
    """Where files can be put. Putting one again replaces it by the same."""

    def put(self, name: str, path: Path) -> None: ...

    def close(self, names: Sequence[str], label: str) -> None:
        """Everything lies there."""


class ObjectStore:
    """A bucket and a prefix in it: `s3://bucket/prefix`. Keys come from the environment, as for every tool."""

    def __init__(self, address: str) -> None:
        try:
            from obstore import store as stores
        except ImportError as error:
            raise CannotSend("object stores need the extra packages: pip install 'stepmark[s3]'") from error
        bucket, _, self._prefix = address.removeprefix(S3).rstrip("/").partition("/")
        made: Any = stores.from_url
        self._store = made(f"{S3}{bucket}", retry_config=fetching.RETRIES, client_options=fetching.PATIENCE)

    def put(self, name: str, path: Path) -> None:
        self._store.put(f"{self._prefix}/{name}" if self._prefix else name, path)

    def close(self, names: Sequence[str], label: str) -> None:
        """Nothing is left to do: a prefix belongs to one snapshot."""


class HubRepository:
    """A dataset repository of the hub: `hf://owner/name`. The token is HF_TOKEN's. A snapshot that goes where another
    one lay takes the place of its data; both stay to be had by their tags."""

    def __init__(self, address: str, api: Any = None) -> None:
        self._name = address.removeprefix(HUB).strip("/")
        if api is None:
            try:
                from huggingface_hub import HfApi
            except ImportError as error:
                raise CannotSend("the hub needs the extra packages: pip install 'stepmark[hf]'") from error
            api = HfApi()
        self._api = api
        self._of = {"repo_id": self._name, "repo_type": "dataset"}
        self._api.create_repo(**self._of, private=True, exist_ok=True)

    def put(self, name: str, path: Path) -> None:
        self._api.upload_file(path_or_fileobj=str(path), path_in_repo=name, **self._of)

    def close(self, names: Sequence[str], label: str) -> None:
        there = self._api.list_repo_files(**self._of)
        older = sorted(name for name in there if name.startswith("data/") and name not in names)
        if older:
            self._api.delete_files(delete_patterns=older, **self._of)
        self._api.create_tag(tag=label, exist_ok=True, **self._of)


def place_of(address: str) -> Place:
    try:
        if address.startswith(HUB):
            return HubRepository(address)
        if address.startswith(S3):
            return ObjectStore(address)
    except CannotSend:
        raise
    except Exception as error:  # each library has errors of its own; the person is told where, and why
        raise CannotSend(f"{address}: {_first_line(error)}") from error
    raise CannotSend(f"{address} is neither s3://bucket/prefix nor hf://owner/name.")


def names(snapshot: Snapshot) -> list[str]:
    """Every file that the snapshot lists, the manifest last."""
    return sorted(snapshot.files.values_list("name", flat=True), key=lambda name: (name == LAST, name))


def send(snapshot: Snapshot, place: Place, *, after: int = 0) -> Iterator[str]:
    """Names each file once it is there, beginning behind so many. Done twice it changes nothing."""
    return _sent(names(snapshot), snapshots.folder(snapshot), place, snapshot.name, after)


def _sent(wanted: list[str], folder: Path, place: Place, label: str, after: int) -> Iterator[str]:
    """Asks no database: it may be another thread that sends."""
    for name in wanted[after:]:
        try:
            place.put(name, folder / name)
        except Exception as error:  # each library has errors of its own; the person is told which file, and why
            raise CannotSend(f"{name}: {_first_line(error)}") from error
        yield name
    try:
        place.close(wanted, label)
    except Exception as error:  # as above
        raise CannotSend(f"{label}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """The libraries' own words are pages long, and may hold what was signed."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
