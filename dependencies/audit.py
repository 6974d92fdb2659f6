"""Compare the lock file with known vulnerabilities: `python -m dependencies.audit FOLDER`.

FOLDER has advisories in the OSV format, as YAML or JSON, such as a copy of https://github.com/pypa/advisory-database.
No package on PyPI ships maintained advisories, so the operator or the build fetches them; this program needs
no network. It ends with 1 if a package is affected, and with 2 if the advisories are missing or older than --max-days.
"""

import argparse
import datetime as dt
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from packaging.version import InvalidVersion, Version

from dependencies.lock_file import LOCK_FILE, LockedPackage, normalize_name, read_lock_file

AFFECTED, UNUSABLE = 1, 2


class Weakness(NamedTuple):
    package: LockedPackage
    advisory: str
    aliases: tuple[str, ...]
    fixed_in: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lock-file", type=Path, default=LOCK_FILE)
    parser.add_argument("--max-days", type=int, default=30, help="how old the newest advisory may be (default: 30)")
    options = parser.parse_args(arguments)
    packages, advisories = read_lock_file(options.lock_file), list(read_advisories(options.folder))
    newest = max((str(each.get("modified", "")) for each in advisories), default="")
    found = list(find_weaknesses(packages, advisories))
    for weakness in found:
        fixed = ", ".join(weakness.fixed_in) or "no fixed version"
        names = ", ".join((weakness.advisory, *weakness.aliases))
        sys.stdout.write(f"{weakness.package.name} {weakness.package.version}: {names}; fixed in: {fixed}\n")
    sys.stdout.write(
        f"{len(packages)} packages, {len(advisories)} advisories up to {newest[:10] or '?'}: {len(found)} weaknesses\n"
    )
    if found:
        return AFFECTED
    return UNUSABLE if _is_too_old(newest, options.max_days) else 0


def _is_too_old(newest: str, max_days: int) -> bool:
    try:
        at = dt.datetime.fromisoformat(newest)
    except ValueError:
        return True
    return dt.datetime.now(dt.UTC) - at.astimezone(dt.UTC) > dt.timedelta(days=max_days)


def read_advisories(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the advisories in a folder, without those that were withdrawn."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".yaml", ".yml", ".json"} or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=_TextLoader)  # noqa: S506  a safe loader
        if isinstance(content, dict) and "affected" in content and not content.get("withdrawn"):
            yield content


class _TextLoader(yaml.CSafeLoader):
    """Leaves versions and times as text: 1.10 is not the number 1.1."""


_TextLoader.yaml_implicit_resolvers = {}


def find_weaknesses(packages: Iterable[LockedPackage], advisories: Iterable[Mapping[str, Any]]) -> Iterator[Weakness]:
    locked: dict[str, list[LockedPackage]] = {}
    for package in packages:
        locked.setdefault(package.name, []).append(package)
    for advisory in advisories:
        for affected in advisory["affected"]:
            about = affected.get("package", {})
            if about.get("ecosystem") != "PyPI":
                continue
            for package in locked.get(normalize_name(about.get("name", "")), ()):
                if _is_affected(package.version, affected):
                    aliases = tuple(advisory.get("aliases") or ())
                    yield Weakness(package, str(advisory["id"]), aliases, tuple(_list_fixes(affected)))


def _is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    if version in (affected.get("versions") or ()):
        return True
    ranges = [each for each in affected.get("ranges") or () if each.get("type") == "ECOSYSTEM"]
    return any(_is_in_range(version, each.get("events") or ()) for each in ranges)


def _is_in_range(version: str, events: Iterable[Mapping[str, str]]) -> bool:
    """Follow the events in order: a version is affected from an introduction until a fix."""
    is_affected = False
    for event in sorted(events, key=_event_version):
        at = _event_version(event)
        if "introduced" in event and Version(version) >= at:
            is_affected = True
        elif ("fixed" in event and Version(version) >= at) or ("last_affected" in event and Version(version) > at):
            is_affected = False
    return is_affected


def _event_version(event: Mapping[str, str]) -> Version:
    try:
        return Version(next(iter(event.values())))
    except InvalidVersion:
        return Version("0")


def _list_fixes(affected: Mapping[str, Any]) -> Iterator[str]:
    for each in affected.get("ranges") or ():
        yield from (event["fixed"] for event in each.get("events") or () if "fixed" in event)


if __name__ == "__main__":
    sys.exit(main())
