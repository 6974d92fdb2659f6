"""Where snapshots can be delivered: object stores and repositories of the Hugging Face hub.

The operator configures destinations by name in `STEPMARK_DESTINATIONS`, so that no one enters an address or a key on a
page. Uploading reads no database rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings

from exports.orders import InvalidOrder
from jobs.failures import JobFailed
from labeling.traces import object_store

S3, HUB = "s3://", "hf://"


class DeliveryFailed(JobFailed):
    """The address is invalid, a package is missing, or the destination refused a file."""


def configured_destinations() -> dict[str, str]:
    """Return addresses by name."""
    return dict(settings.DESTINATIONS)


def validate_destinations(names: Iterable[str]) -> None:
    """Raise InvalidOrder if a destination is not configured."""
    known = configured_destinations()
    if unknown := sorted(set(names) - known.keys()):
        message = f"Unknown destination {', '.join(unknown)}. Configured destinations: {', '.join(known) or 'none'}."
        raise InvalidOrder("destination", message)


def build_address(name: str, *, project: str, snapshot: str) -> str:
    """Return the address for one snapshot: a folder under an S3 prefix, or a repository of a hub owner."""
    base = configured_destinations()[name].rstrip("/")
    if base.startswith(HUB):
        return base if "/" in base.removeprefix(HUB) else f"{base}/{snapshot}"
    return f"{base}/{project}/{snapshot}"


class DeliveryTarget(Protocol):
    def put(self, name: str, path: Path) -> None:
        """Upload a file, replacing an earlier upload."""

    def close(self, names: Sequence[str], label: str) -> None:
        """Finish after all files are uploaded."""


class ObjectStore:
    """A bucket and a prefix in it: `s3://bucket/prefix`. Keys come from the usual environment variables."""

    def __init__(self, address: str) -> None:
        try:
            from obstore import store as stores
        except ImportError as error:
            raise DeliveryFailed("Object stores need extra packages: pip install 'stepmark[s3]'") from error
        bucket, _, self._prefix = address.removeprefix(S3).rstrip("/").partition("/")
        from_url: Any = stores.from_url
        self._store = from_url(
            f"{S3}{bucket}", retry_config=object_store.RETRY_CONFIG, client_options=object_store.CLIENT_OPTIONS
        )

    def put(self, name: str, path: Path) -> None:
        self._store.put(f"{self._prefix}/{name}" if self._prefix else name, path)

    def close(self, names: Sequence[str], label: str) -> None:
        """Do nothing: a prefix belongs to one snapshot, so there are no older files to remove."""


class HubRepository:
    """A private dataset repository of the hub: `hf://owner/name`. The token comes from HF_TOKEN.

    A later snapshot in the same repository replaces the data files. Each snapshot has a tag with its name.
    """

    def __init__(self, address: str, api: Any = None) -> None:
        if api is None:
            try:
                from huggingface_hub import HfApi
            except ImportError as error:
                raise DeliveryFailed("The hub needs extra packages: pip install 'stepmark[hf]'") from error
            api = HfApi()
        self._api = api
        self._repository = {"repo_id": address.removeprefix(HUB).strip("/"), "repo_type": "dataset"}
        self._api.create_repo(**self._repository, private=True, exist_ok=True)

    def put(self, name: str, path: Path) -> None:
        self._api.upload_file(path_or_fileobj=str(path), path_in_repo=name, **self._repository)

    def close(self, names: Sequence[str], label: str) -> None:
        existing = self._api.list_repo_files(**self._repository)
        if outdated := sorted(name for name in existing if name.startswith("data/") and name not in names):
            self._api.delete_files(delete_patterns=outdated, **self._repository)
        self._api.create_tag(tag=label, exist_ok=True, **self._repository)


def open_target(address: str) -> DeliveryTarget:
    try:
        if address.startswith(HUB):
            return HubRepository(address)
        if address.startswith(S3):
            return ObjectStore(address)
    except DeliveryFailed:
        raise
    except Exception as error:  # each library has its own exception classes
        raise DeliveryFailed(f"{address}: {_first_line(error)}") from error
    raise DeliveryFailed(f"Unknown address {address!r}. Use s3://bucket/prefix or hf://owner/name.")


def upload_files(
    names: Sequence[str], folder: Path, target: DeliveryTarget, *, label: str, start: int = 0
) -> Iterator[str]:
    """Upload files of a folder from number `start`, yield each name when it is done, then close the target. Uploading
    a file twice is harmless."""
    for name in names[start:]:
        try:
            target.put(name, folder / name)
        except Exception as error:  # as above
            raise DeliveryFailed(f"{name}: {_first_line(error)}") from error
        yield name
    try:
        target.close(names, label)
    except Exception as error:  # as above
        raise DeliveryFailed(f"{label}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Shorten a library's message, which can be pages long and contain signed headers."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
