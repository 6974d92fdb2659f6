"""References resolve to allowed files only."""

from pathlib import Path
from typing import Any

import pytest

from labeling.traces import locations


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path / "data"
    settings.INCOMING_DIR = tmp_path / "incoming"
    settings.INCOMING_ADDRESSES = ["s3://traces/in"]
    (settings.INCOMING_DIR / "a").mkdir(parents=True)
    (settings.INCOMING_DIR / "a/b.jsonl").write_text("{}")
    (tmp_path / "secret").write_text("no")
    (settings.INCOMING_DIR / "link").symlink_to(tmp_path / "secret")
    return tmp_path


def test_upload_references_resolve() -> None:
    path = locations.save_upload(name="a b.jsonl", parts=[b"{}"])
    assert locations.resolve_location(locations.make_upload_reference(path)).path == path.resolve()


def test_files_of_the_incoming_folder_resolve(places: Path) -> None:
    assert locations.list_incoming_files() == ["beside:a/b.jsonl", "beside:link"]
    assert locations.resolve_location("beside:a/b.jsonl").path == (places / "incoming/a/b.jsonl").resolve()


def test_allowed_addresses_resolve() -> None:
    place = locations.resolve_location("s3://traces/in/x/y.jsonl.gz")
    assert (place.address, place.name, place.path) == ("s3://traces/in/x/y.jsonl.gz", "y.jsonl.gz", None)


@pytest.mark.parametrize(
    "reference",
    [
        "beside:../secret",
        "beside:link",
        "beside:",
        "beside:a",
        "beside:a/b.jsonl\0",
        "beside:/etc/hostname",
        "sent:../../secret",
        "sent:0123456789abcdef/../../../secret",
        "sent:0123456789abcdef/none",
        "s3://traces/other/x",
        "s3://traces/incoming/x",
        "s3://traces/in/../other/x",
        "s3://other/in/x",
        "http://169.254.169.254/latest",
        "file:///etc/hostname",
        "",
    ],
)
def test_other_references_are_refused(reference: str) -> None:
    with pytest.raises(locations.LocationNotFound):
        locations.resolve_location(reference)


def test_nothing_resolves_without_an_incoming_folder(settings: Any) -> None:
    settings.INCOMING_DIR = None
    assert locations.list_incoming_files() == []
    with pytest.raises(locations.LocationNotFound):
        locations.resolve_location("beside:a/b.jsonl")
