"""Problems that an operator must learn about: a full disk and lost files; and strangers cannot fill the logs."""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from events import backup
from exports import snapshots
from tests import factories
from tests.exports.snapshot_builder import build_snapshot
from tests.factories import NOW
from tests.labeling.quality import submitted_work
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


def test_files_that_are_gone_are_shown_as_missing(personas: LoggedInPersonas) -> None:
    """A backup has no files of snapshots, so after a restore they are gone."""
    cast, client = personas.cast, personas.client("lead")
    rater = cast.project.raters.get(user=cast.annotator)
    submitted_work.submit_trace(rater, factories.make_trace(cast.project), [1, -1])
    snapshot = build_snapshot(cast.project, "trl")
    address = reverse("dashboard:snapshot", args=[cast.project.slug, snapshot.name])
    assert "data-lost" not in client.get(address).content.decode()
    shutil.rmtree(snapshots.snapshot_folder(snapshot))
    page = client.get(address)
    names = list(snapshot.files.order_by("name").values_list("name", flat=True))
    assert page.context["lost_files"] == names
    assert page.content.decode().count("data-lost") == len(names)
    file = reverse("dashboard:download_snapshot_file", args=[cast.project.slug, snapshot.name, names[0]])
    assert client.get(file).status_code == 404


def test_requests_of_strangers_write_little_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A foreign host name or an unknown address leaves a few short lines, without a traceback."""
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            Client().get("/", headers={"Host": "evil.example"})
            Client().get("/no/such/page")
    written = sum(len(record.getMessage()) + len(record.exc_text or "") for record in caplog.records)
    assert written < 40 * 800
    assert not [record for record in caplog.records if record.exc_info]


def test_readiness_notices_a_disk_that_takes_no_writes(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path / "file"
    settings.DATA_DIR.write_text("")  # a folder that cannot be written to, for every user
    response = Client().get(reverse("ready"))
    assert response.status_code == 503
    assert response.json()["ready"] is False


@pytest.mark.django_db(transaction=True)
@pytest.mark.fault
def test_backup_replaces_an_older_one_only_when_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, synced = tmp_path / "stepmark.backup", list[str]()
    sync = os.fsync

    def note(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        sync(fd)

    monkeypatch.setattr(os, "fsync", note)
    backup.create_backup(file=file, now=NOW)
    assert synced[0] == "archive"
    assert tmp_path.name in synced[1:]
    assert file.stat().st_mode & 0o777 == 0o600
