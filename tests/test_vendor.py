"""Vendored files match their manifest and include their license."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "static" / "vendor", ROOT / "tests" / "journeys" / "vendor")
ENTRIES = [(folder, entry) for folder in FOLDERS for entry in json.loads((folder / "manifest.json").read_text())]


def package_folder(folder: Path, entry: dict[str, Any]) -> Path:
    return folder / f"{entry['name']}-{entry['version']}"


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha512(path.read_bytes()).hexdigest() for path in files}


each_entry = pytest.mark.parametrize(("folder", "entry"), ENTRIES, ids=[entry["name"] for _, entry in ENTRIES])


@each_entry
def test_manifest_names_every_file_and_its_digest(folder: Path, entry: dict[str, Any]) -> None:
    assert digests(package_folder(folder, entry)) == entry["files"]


@each_entry
def test_manifest_names_an_existing_license(folder: Path, entry: dict[str, Any]) -> None:
    assert entry["licence"]
    assert (package_folder(folder, entry) / entry["licence_file"]).stat().st_size > 300


@pytest.mark.parametrize("folder", FOLDERS)
def test_manifest_names_every_folder(folder: Path) -> None:
    folders = {path.name for path in folder.iterdir() if path.is_dir()}
    assert folders == {package_folder(parent, entry).name for parent, entry in ENTRIES if parent == folder}


def test_vendored_files_reference_only_existing_files() -> None:
    """collectstatic fails on a URL without a file and on a missing source map."""
    for path in FOLDERS[0].rglob("*"):
        if path.suffix in {".css", ".js"}:
            text = path.read_text()
            assert "sourceMappingURL" not in text, path
            for address in re.findall(r"url\(([^)]+)\)", text) if path.suffix == ".css" else []:
                assert (path.parent / address.strip("\"'")).is_file(), f"{path}: {address}"
