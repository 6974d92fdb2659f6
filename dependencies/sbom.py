"""Write the bill of materials: `python -m dependencies.sbom [--output FILE]`, CycloneDX 1.6 as JSON.

The same lock file always gives the same bytes, so a changed file is a changed dependency. Dependencies between packages
are read from the metadata of the installed ones.
"""

import argparse
import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from dependencies.lock_file import ROOT as PROJECT
from dependencies.lock_file import LockedPackage, VendoredFile, normalize_name, read_lock_file, read_vendored

_REQUIRED = re.compile(r"^[A-Za-z0-9._-]+")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, help="a file; standard output by default")
    output = parser.parse_args(arguments).output
    content = json.dumps(build_sbom(read_lock_file(), read_vendored()), indent=2) + "\n"
    if output:
        output.write_text(content)
    else:
        sys.stdout.write(content)


def build_sbom(packages: Sequence[LockedPackage], vendored: Sequence[VendoredFile]) -> dict[str, Any]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    root = {
        "type": "application",
        "bom-ref": f"pkg:generic/{project['name']}@{project['version']}",
        "name": project["name"],
        "version": project["version"],
        "licenses": [{"expression": project["license"]}],
    }
    components = [_describe_package(each) for each in packages] + [_describe_vendored(each) for each in vendored]
    content = {
        "metadata": {"component": root},
        "components": components,
        "dependencies": _list_dependencies(root["bom-ref"], project["dependencies"], packages, vendored),
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
    } | content


def _describe_package(package: LockedPackage) -> dict[str, Any]:
    address = _package_url(package)
    properties = [{"name": "stepmark:marker", "value": package.marker}] if package.marker else []
    return {
        "type": "library",
        "bom-ref": address,
        "name": package.name,
        "version": package.version,
        "purl": address,
        **({"properties": properties} if properties else {}),
    }


def _describe_vendored(file: VendoredFile) -> dict[str, Any]:
    address = _vendored_url(file)
    licenses = [{"license": {"id": file.license}}]
    return {
        "type": "library",
        "bom-ref": address,
        "name": file.name,
        "version": file.version,
        "licenses": licenses,
        "purl": address,
    }


def _package_url(package: LockedPackage) -> str:
    return f"pkg:pypi/{package.name}@{package.version}"


def _vendored_url(file: VendoredFile) -> str:
    return f"pkg:generic/{file.name}@{file.version}"


def _list_dependencies(
    root: str, direct: Iterable[str], packages: Sequence[LockedPackage], vendored: Sequence[VendoredFile]
) -> list[dict[str, Any]]:
    urls: dict[str, list[str]] = {}
    for package in packages:
        urls.setdefault(package.name, []).append(_package_url(package))
    needed = sorted({url for name in _names_in(direct) for url in urls.get(name, ())})
    rows = [{"ref": root, "dependsOn": [*needed, *map(_vendored_url, vendored)]}]
    for package in packages:
        others = {url for name in _find_required(package.name) for url in urls.get(name, ())}
        rows.append({"ref": _package_url(package), "dependsOn": sorted(others - set(urls[package.name]))})
    return rows


def _find_required(name: str) -> list[str]:
    """Return what an installed package requires; nothing if it is not installed on this kind of machine."""
    try:
        return _names_in(metadata.requires(name) or ())
    except metadata.PackageNotFoundError:
        return []


def _names_in(requirements: Iterable[str]) -> list[str]:
    return [normalize_name(found[0]) for each in requirements if (found := _REQUIRED.match(each))]


if __name__ == "__main__":
    main()
