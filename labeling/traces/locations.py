"""Resolve the reference of a file to import: an upload, a file in the incoming folder, or an object in a store.

The pages only pass references. A reference can only lead to uploads, to the incoming folder, and to the addresses that
the operator allowed; never to other files of the server or to other hosts.
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
    """The reference leads to no file, or to a place that must not be read."""


class FileLocation(NamedTuple):
    """A file that can be opened, or the address of an object that must be fetched first."""

    reference: str
    name: str
    path: Path | None = None
    address: str = ""


def make_upload_reference(path: Path) -> str:
    """Return the reference of a path that `uploads.save_upload` returned."""
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
    raise LocationNotFound("this is not the reference of a file")


def list_incoming_files() -> list[str]:
    """Return the references of the files in the incoming folder, by name."""
    folder: Path | None = settings.INCOMING_DIR
    if folder is None or not folder.is_dir():
        return []
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(f"beside:{path.relative_to(folder).as_posix()}" for path in paths)[:MAX_LISTED]


def _locate_in_folder(reference: str, folder: Path, name: str) -> FileLocation:
    """Locate a file inside the folder. Symbolic links are followed first, so none can lead outside."""
    try:
        path = (folder / name).resolve()
        is_inside = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError):
        is_inside = False
    if not is_inside:
        raise LocationNotFound("the file no longer exists: upload it again")
    return FileLocation(reference, path.name, path)


def list_allowed_addresses() -> list[str]:
    """Return the prefixes of the addresses that leads may import from."""
    return list(settings.INCOMING_ADDRESSES)


def _check_address_allowed(address: str) -> str:
    if ".." not in address.split("/") and any(
        address.startswith(f"{prefix.rstrip('/')}/") for prefix in list_allowed_addresses()
    ):
        return address
    names = ", ".join(list_allowed_addresses()) or "no address"
    raise LocationNotFound(f"this address is not allowed: imports can read from {names}")
