"""Everything into one file while people work, and back."""

import fcntl
import json
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

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_connections")]


@pytest.fixture
def file(tmp_path: Path, settings: Settings) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path / "stepmark.backup"


def append(what: str) -> None:
    audit_log.log_event(what=what, by=None, now=NOW)


def written() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("what", flat=True))


def test_restore_brings_back_what_was_backed_up_and_locks_it_again(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factories.make_user("ada")
    append("before")
    call_command("backup", str(file))
    assert "1 events, 0 submissions" in capsys.readouterr().out
    assert file.stat().st_mode & 0o077 == 0
    append("after")
    with pytest.raises(CommandError, match="--yes"):
        call_command("restore", str(file))
    assert written() == ["before", "after"]
    call_command("restore", str(file), "--yes")
    assert written() == ["before", "backup.restored"]
    assert append_only.missing_triggers() == []
    assert [each.name for each in file.parent.iterdir() if each.name.startswith(".stepmark")] == []


def test_backup_is_of_one_moment_while_people_write(file: Path) -> None:
    """Every transaction writes two events: a backup with an odd number has torn one apart."""
    is_over = threading.Event()

    def write_pairs() -> int:
        pairs = 0
        while not is_over.is_set():
            with transaction.atomic():
                append("first")
                append("second")
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
    assert written() == ["first", "second"] * (counts[-1] // 2) + ["backup.restored"]


def changed(file: Path, **facts: object) -> Path:
    """The backup with other facts."""
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


def damaged(file: Path) -> Path:
    other = file.with_name("damaged")
    content = bytearray(file.read_bytes())
    with tarfile.open(file) as tar:
        middle = tar.getmember("database").offset_data + tar.getmember("database").size // 2
    content[middle] ^= 1
    other.write_bytes(content)
    return other


def test_restore_refuses_what_it_cannot_bring_back(file: Path) -> None:
    append("here")
    rows = backup.create_backup(file=file, now=NOW)["rows"]
    append("and after")
    no_backup = file.with_name("labels")
    no_backup.write_text("labels")
    refused = {
        "another format": changed(file, format=1),
        "no backup of Stepmark": no_backup,
        "is damaged": damaged(file),
    }
    for said, other in refused.items():
        with pytest.raises(CommandError, match=said):
            call_command("restore", str(other), "--yes")
    with pytest.raises(Unusable, match="newer version"):
        backup.restore_backup(file=changed(file, migrations=[["labeling", "0099_from_the_future"]]), now=NOW)
    assert written() == ["here", "and after"]
    with pytest.raises(Unusable, match="events_event holds 1 rows"):
        backup.restore_backup(file=changed(file, rows={**rows, "events_event": 2}), now=NOW)


def test_backup_of_tables_from_another_version_is_whole_and_says_so(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some tables are not there before a change of models. That version alone can bring it back."""
    append("here")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE labeling_manifestrow RENAME TO not_there_yet")
        try:
            call_command("backup", str(file))
        finally:
            cursor.execute("ALTER TABLE not_there_yet RENAME TO labeling_manifestrow")
    said = capsys.readouterr()
    assert "1 events, 0 submissions" in said.out
    assert "it has no labeling_manifestrow" in said.err
    append("and after")
    with pytest.raises(
        CommandError, match=r"it has no labeling_manifestrow\): restore it with the version that made it"
    ):
        call_command("restore", str(file), "--yes")
    assert written() == ["here", "and after"]


def test_restore_refuses_while_the_supervisor_holds_the_data(file: Path, settings: Settings) -> None:
    settings.EMBEDDED = True
    backup.create_backup(file=file, now=NOW)
    with (file.parent / "supervisor.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CommandError, match=r"stop \./run"):
            call_command("restore", str(file))


def test_backup_says_where_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written to"):
        call_command("backup", str(tmp_path / "nowhere" / "file"))
