"""Backup and restore of the whole database."""

import fcntl
import json
import os
import tarfile
import threading
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from pytest_django import Settings

from events import append_only, audit_log, backup
from events.backup import Unusable
from events.models import Event
from tests import concurrency, factories
from tests.factories import NOW

pytestmark = [
    pytest.mark.fault,  # starts pg_dump and pg_restore
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("real_connections"),
]


@pytest.fixture
def file(tmp_path: Path, settings: Settings) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path / "stepmark.backup"


def log(what: str) -> None:
    audit_log.log_event(what=what, by=None, now=NOW)


def list_events() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("what", flat=True))


def test_restore_replaces_the_data_and_locks_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factories.make_user("ada")
    log("before")
    call_command("backup", str(file))
    assert "1 events, 0 submissions" in capsys.readouterr().out
    assert file.stat().st_mode & 0o077 == 0
    log("after")
    with pytest.raises(CommandError, match="--yes"):
        call_command("restore", str(file))
    assert list_events() == ["before", "after"]
    call_command("restore", str(file), "--yes")
    assert list_events() == ["before", "backup.restored"]
    assert append_only.missing_triggers() == []
    assert [each.name for each in file.parent.iterdir() if each.name.startswith(".stepmark")] == []


def test_backup_is_consistent_while_people_write(file: Path) -> None:
    """Every transaction writes two events, so an odd number would be half a transaction."""
    is_over = threading.Event()

    def write_pairs() -> int:
        pairs = 0
        while not is_over.is_set():
            with transaction.atomic():
                log("first")
                log("second")
            pairs += 1
        return pairs

    def back_up_often() -> list[int]:
        try:
            return [backup.create_backup(file=file, now=NOW)["rows"]["events_event"] for _ in range(4)]
        finally:
            is_over.set()

    pairs, counts = concurrency.run_at_once(write_pairs, back_up_often)
    assert isinstance(counts, list), counts
    assert isinstance(pairs, int), pairs
    assert pairs > 1
    assert [count % 2 for count in counts] == [0, 0, 0, 0]
    backup.restore_backup(file=file, now=NOW)
    assert list_events() == ["first", "second"] * (counts[-1] // 2) + ["backup.restored"]


def change_facts(file: Path, **facts: object) -> Path:
    """Copy the backup with other facts."""
    other = file.with_name("other")
    path = file.parent / "parts" / "facts.json"
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(file) as tar:
        for name in ("facts.json", "database"):
            part = tar.extractfile(name)
            assert part
            path.with_name(name).write_bytes(part.read())
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))
    with tarfile.open(other, "w") as tar:
        tar.add(path, "facts.json")
        tar.add(file.parent / "parts" / "database", "database")
    return other


def damage(file: Path) -> Path:
    other = file.with_name("damaged")
    content = bytearray(file.read_bytes())
    with tarfile.open(file) as tar:
        middle = tar.getmember("database").offset_data + tar.getmember("database").size // 2
    content[middle] ^= 1
    other.write_bytes(content)
    return other


def get_code(error: CommandError) -> str:
    """Return the code of the error that the command reports."""
    assert isinstance(error.__cause__, Unusable)
    return error.__cause__.code


def test_unusable_backups_are_refused(file: Path) -> None:
    log("here")
    rows = backup.create_backup(file=file, now=NOW)["rows"]
    log("and after")
    no_backup = file.with_name("labels")
    no_backup.write_text("labels")
    unusable = {"format": change_facts(file, format=1), "not_a_backup": no_backup, "damaged": damage(file)}
    for code, other in unusable.items():
        with pytest.raises(CommandError) as refused:
            call_command("restore", str(other), "--yes")
        assert get_code(refused.value) == code
        with pytest.raises(CommandError) as refused:
            call_command("verify_backup", str(other))
        assert get_code(refused.value) == code
    with pytest.raises(Unusable) as unusable_file:
        backup.restore_backup(file=change_facts(file, migrations=[["labeling", "0099_from_the_future"]]), now=NOW)
    assert unusable_file.value.code == "newer"
    assert list_events() == ["here", "and after"]
    with pytest.raises(Unusable, match="events_event") as unusable_file:
        backup.restore_backup(file=change_facts(file, rows={**rows, "events_event": 2}), now=NOW)
    assert unusable_file.value.code == "rows"


def test_backup_of_another_version_is_complete_and_reports_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The database lacks a table that this version has. Only its own version can restore the backup."""
    log("here")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE labeling_manifestrow RENAME TO not_there_yet")
        try:
            call_command("backup", str(file))
        finally:
            cursor.execute("ALTER TABLE not_there_yet RENAME TO labeling_manifestrow")
    output = capsys.readouterr()
    assert "1 events, 0 submissions" in output.out
    assert "labeling_manifestrow" in output.err
    log("and after")
    with pytest.raises(CommandError, match="labeling_manifestrow") as refused:
        call_command("restore", str(file), "--yes")
    assert get_code(refused.value) == "other_version"
    assert list_events() == ["here", "and after"]


def test_restore_is_refused_while_the_platform_runs(file: Path, settings: Settings) -> None:
    settings.EMBEDDED = True
    backup.create_backup(file=file, now=NOW)
    with (file.parent / "supervisor.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CommandError, match=r"\./run"):
            call_command("restore", str(file))


def test_backup_into_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nowhere"):
        call_command("backup", str(tmp_path / "nowhere" / "file"))


def test_backup_can_be_verified_without_a_restore(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log("here")
    backup.create_backup(file=file, now=NOW)
    log("and after")
    call_command("verify_backup", str(file))
    assert NOW.isoformat() in capsys.readouterr().out
    assert list_events() == ["here", "and after"]
    assert [each.name for each in file.parent.iterdir() if each.name.startswith(".stepmark")] == []


def test_backup_is_on_the_disk_before_it_replaces_another(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(handle: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        fsync(handle)

    def note_replace(source: Path, target: Path) -> None:
        steps.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    backup.create_backup(file=file, now=NOW)
    assert steps == ["archive", "replace", file.parent.name]
