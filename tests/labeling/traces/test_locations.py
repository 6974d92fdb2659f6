"""References resolve to allowed files only."""

from pathlib import Path
from typing import Any

import pytest

from labeling.models import Project
from labeling.traces import locations
from tests import factories

pytestmark = pytest.mark.django_db


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


@pytest.fixture
def project() -> Project:
    return factories.make_project("sums")


def test_upload_references_resolve_in_their_project_only(project: Project) -> None:
    path = locations.save_upload(name="a b.jsonl", parts=[b"{}"])
    reference = locations.make_upload_reference(path, project=project)
    assert locations.resolve_location(reference, project=project).path == path.resolve()
    with pytest.raises(locations.LocationNotFound):
        locations.resolve_location(reference, project=factories.make_project())
    with pytest.raises(locations.LocationNotFound):
        locations.resolve_location(reference.rpartition(":")[0], project=project)


def test_files_of_the_incoming_folder_resolve(places: Path, project: Project) -> None:
    assert locations.list_incoming_files(project) == ["beside:a/b.jsonl", "beside:link"]
    assert (
        locations.resolve_location("beside:a/b.jsonl", project=project).path
        == (places / "incoming/a/b.jsonl").resolve()
    )


def test_folder_with_the_name_of_a_project_is_for_that_project(project: Project) -> None:
    owner = factories.make_project("a")
    assert locations.list_incoming_files(owner) == ["beside:a/b.jsonl", "beside:link"]
    assert locations.list_incoming_files(project) == ["beside:link"]
    assert locations.resolve_location("beside:a/b.jsonl", project=owner).path
    with pytest.raises(locations.LocationNotFound):
        locations.resolve_location("beside:a/b.jsonl", project=project)


def test_allowed_addresses_resolve(project: Project) -> None:
    place = locations.resolve_location("s3://traces/in/x/y.jsonl.gz", project=project)
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
def test_other_references_are_refused(reference: str, project: Project) -> None:
    with pytest.raises(locations.LocationNotFound):
        locations.resolve_location(reference, project=project)


def test_nothing_resolves_without_an_incoming_folder(settings: Any, project: Project) -> None:
    settings.INCOMING_DIR = None
    assert locations.list_incoming_files(project) == []
    with pytest.raises(locations.LocationNotFound):
        locations.resolve_location("beside:a/b.jsonl", project=project)
