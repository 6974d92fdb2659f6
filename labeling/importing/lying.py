"""Where a file lies that is to come in: sent over the network, in the folder beside the server, or in an object store.

Whoever uses the pages names a file by a reference. It leads to what was sent, to files of one folder, and to addresses
that the operator opened; never elsewhere on the server, and never to a host that a lead thinks up.
"""

import re
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from labeling.importing import uploads

SCHEMES = ("s3://", "gs://", "az://")
LISTED = 200
_SENT = re.compile(r"[0-9a-f]{16}/[^/\\]+")


class NotThere(Exception):
    """No file lies where the reference leads, or it leads where nobody may read."""


class Place(NamedTuple):
    """A file that can be opened, or the address of an object that must be fetched first."""

    reference: str
    name: str
    path: Path | None = None
    address: str = ""


def sent(path: Path) -> str:
    """The reference of what `uploads.keep` kept."""
    return f"sent:{path.parent.name}/{path.name}"


def find(reference: str) -> Place:
    kind, _, rest = reference.partition(":")
    if kind == "sent" and _SENT.fullmatch(rest):
        return _file(reference, uploads.folder(), rest)
    if kind == "beside" and settings.INCOMING_DIR is not None:
        return _file(reference, settings.INCOMING_DIR, rest)
    if reference.startswith(SCHEMES):
        return Place(reference, reference.rstrip("/").rpartition("/")[2], address=_opened(reference))
    raise NotThere("no file is known by this name")


def beside() -> list[str]:
    """References of the files in the folder beside the server, by name."""
    folder: Path | None = settings.INCOMING_DIR
    if folder is None or not folder.is_dir():
        return []
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(f"beside:{path.relative_to(folder).as_posix()}" for path in found)[:LISTED]


def _file(reference: str, folder: Path, name: str) -> Place:
    """Inside of the folder, also after every link was followed."""
    try:
        path = (folder / name).resolve()
        is_there = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        raise NotThere("the file is not there any more: send it again")
    return Place(reference, path.name, path)


def opened() -> list[str]:
    """Beginnings of addresses that leads may read."""
    return list(settings.INCOMING_ADDRESSES)


def _opened(address: str) -> str:
    if ".." not in address.split("/") and any(address.startswith(f"{prefix.rstrip('/')}/") for prefix in opened()):
        return address
    names = ", ".join(opened()) or "none"
    raise NotThere(f"only addresses that the operator of this platform opened can be read: {names}")
