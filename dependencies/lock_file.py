"""Packages of the lock file, and the scripts and fonts in static/vendor."""

import json
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOCK_FILE = ROOT / "requirements.txt"
VENDORED = ROOT / "static" / "vendor" / "manifest.json"

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+))?")
_SEPARATORS = re.compile(r"[-_.]+")


class LockedPackage(NamedTuple):
    name: str  # normalized
    version: str
    marker: str = ""  # the condition under which it is installed


class VendoredFile(NamedTuple):
    name: str
    version: str
    license: str


class LockFileUnreadable(Exception):
    """The lock file has no packages, or a line that is not a pin."""


def normalize_name(name: str) -> str:
    """Return the name as package registries compare it."""
    return _SEPARATORS.sub("-", name).lower()


def read_lock_file(path: Path = LOCK_FILE) -> list[LockedPackage]:
    """Return the packages. One with several versions has one row for each."""
    packages = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip() or line.startswith((" ", "#")):
            continue
        found = _PIN.match(line)
        if found is None:
            raise LockFileUnreadable(f"{path.name}, line {number}: this is not a pinned package. Run `make lock`")
        marker = (found["marker"] or "").strip()
        packages.append(LockedPackage(normalize_name(found["name"]), found["version"], marker))
    if not packages:
        raise LockFileUnreadable(f"{path.name} names no packages. Run `make lock`")
    return packages


def read_vendored(path: Path = VENDORED) -> list[VendoredFile]:
    return [VendoredFile(each["name"], each["version"], each["licence"]) for each in json.loads(path.read_text())]
