"""Where a file lies that is to come in: sent over the network, in the folder beside the server, or in an object store.

Whoever uses the pages names a file by a reference. It leads to what was sent, to files of one folder, and to addresses
that the operator opened; never elsewhere on the server, and never to a host that a lead thinks up.
"""

import re
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from labeling.traces import uploads

STORE_SCHEMES = ("s3://", "gs://", "az://")
MAX_LISTED = 200
_UPLOAD_REFERENCE = re.compile(r"[0-9a-f]{16}/[^/\\]+")


class LocationNotFound(Exception):
    """No file lies where the reference leads, or it leads where nobody may read."""


class FileLocation(NamedTuple):
    """A file that can be opened, or the address of an object that must be fetched first."""

    reference: str
    name: str
    path: Path | None = None
    address: str = ""


def make_upload_reference(path: Path) -> str:
    """The reference of what `uploads.keep` kept."""
    return f"sent:{path.parent.name}/{path.name}"


def resolve_location(reference: str) -> FileLocation:
    kind, _, rest = reference.partition(":")
    if kind == "sent" and _UPLOAD_REFERENCE.fullmatch(rest):
        return _locate_in_folder(reference, uploads.uploads_folder(), rest)
    if kind == "beside" and settings.INCOMING_DIR is not None:
        return _locate_in_folder(reference, settings.INCOMING_DIR, rest)
    if reference.startswith(STORE_SCHEMES):
        return FileLocation(
            reference, reference.rstrip("/").rpartition("/")[2], address=_check_address_allowed(reference)
        )
    raise LocationNotFound("no file is known by this name")


def list_incoming_files() -> list[str]:
    """References of the files in the folder beside the server, by name."""
    folder: Path | None = settings.INCOMING_DIR
    if folder is None or not folder.is_dir():
        return []
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(f"beside:{path.relative_to(folder).as_posix()}" for path in found)[:MAX_LISTED]


def _locate_in_folder(reference: str, folder: Path, name: str) -> FileLocation:
    """Inside of the folder, also after every link was followed."""
    try:
        path = (folder / name).resolve()
        is_there = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        raise LocationNotFound("the file is not there any more: send it again")
    return FileLocation(reference, path.name, path)


def list_allowed_addresses() -> list[str]:
    """Beginnings of addresses that leads may read."""
    return list(settings.INCOMING_ADDRESSES)


def _check_address_allowed(address: str) -> str:
    if ".." not in address.split("/") and any(
        address.startswith(f"{prefix.rstrip('/')}/") for prefix in list_allowed_addresses()
    ):
        return address
    names = ", ".join(list_allowed_addresses()) or "none"
    raise LocationNotFound(f"only addresses that the operator of this platform opened can be read: {names}")
