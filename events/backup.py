"""Puts the whole database into one file while people work, and brings it back. The only module that replaces data.

The file is a tar of two parts: `facts.json` (engine, time, migrations, how many rows the append-only tables hold) and
`database`. The secret key is not in it: whoever finds a backup must not be able to sign sessions with it.
"""

import datetime as dt
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from events import append_only, backup_postgresql, backup_shape, backup_sqlite, log
from events.backup_engine import Unusable

FORMAT = 1
_ENGINES = {"sqlite": backup_sqlite, "postgresql": backup_postgresql}

Facts = dict[str, Any]


def make(*, file: Path, now: dt.datetime) -> Facts:
    """Write the backup. The file appears whole or not at all, readable by its owner alone."""
    engine = _ENGINES[connection.vendor]
    with _beside(file) as folder:
        with engine.copied(target=folder / "database") as rows_of:
            there = backup_shape.columns()
            facts = {
                "format": FORMAT,
                "engine": connection.vendor,
                "made_at": now.isoformat(),
                "migrations": sorted(map(list, _applied())),
                "sha256": _digest(folder / "database"),
                "columns": there,
                "rows": {table: rows_of(table) for table in sorted(append_only.registered() & there.keys())},
            }
        (folder / "facts.json").write_text(json.dumps(facts, indent=1))
        whole = folder / "whole"
        with tarfile.open(whole, "w") as tar:
            tar.add(folder / "facts.json", "facts.json")
            tar.add(folder / "database", "database")
        whole.chmod(0o600)
        os.replace(whole, file)
    return facts


def read(file: Path) -> Facts:
    """What a backup says of itself. Raises Unusable where it cannot be brought back here."""
    try:
        with tarfile.open(file) as tar:
            part = tar.extractfile("facts.json")
            facts: Facts = json.loads(part.read()) if part else {}
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        raise Unusable(_("%(file)s is no backup of Stepmark: %(error)s") % {"file": file, "error": error}) from error
    _check(facts)
    return facts


def holds_people() -> bool:
    """Whether there is anything here that a restore would replace."""
    return User._meta.db_table in connection.introspection.table_names() and User.objects.exists()


def restore(*, file: Path, now: dt.datetime) -> Facts:
    """Replace the database by the backup, bring its tables up to date and lock those that are append-only. Raises
    Unusable when what is there afterwards is not what the backup says."""
    facts = read(file)
    with _beside(file) as folder:
        _unpack(file, folder / "database")
        if _digest(folder / "database") != facts["sha256"]:
            raise Unusable(_("This backup is damaged: its database is not the one that was written."))
        _ENGINES[connection.vendor].bring_back(source=folder / "database")
    call_command("migrate", interactive=False, verbosity=0)
    if missing := backup_shape.lacking(backup_shape.columns()):
        raise Unusable(_OTHER_TABLES % {"missing": missing})
    _compare(facts)
    log.append(what="backup.restored", by=None, now=now, detail={"made_at": facts["made_at"]})
    return facts


def _unpack(file: Path, target: Path) -> None:
    """The bytes alone: names, owners and links of a file from elsewhere are not believed."""
    with tarfile.open(file) as tar, target.open("wb") as copy:
        part = tar.extractfile("database")
        if part is None:
            raise Unusable(_("This backup is damaged: its database is not the one that was written."))
        shutil.copyfileobj(part, copy)


def _check(facts: Facts) -> None:
    if facts.get("format") != FORMAT:
        raise Unusable(_("This backup has another format: restore it with the version of Stepmark that made it."))
    if facts["engine"] != connection.vendor:
        raise Unusable(
            _("This backup was made on %(there)s and this platform runs on %(here)s: they cannot be mixed.")
            % {"there": facts["engine"], "here": connection.vendor}
        )
    known = set(MigrationLoader(None).disk_migrations)
    if newer := {tuple(each) for each in facts["migrations"]} - known:
        raise Unusable(
            _("This backup was made by a newer version of Stepmark (it knows %(migration)s): update first.")
            % {"migration": ".".join(min(newer))}
        )
    is_whole = known <= {tuple(each) for each in facts["migrations"]}
    if is_whole and "columns" in facts and (missing := backup_shape.lacking(facts["columns"])):
        raise Unusable(_OTHER_TABLES % {"missing": missing})


_OTHER_TABLES = gettext_lazy(
    "This backup was made by another version of Stepmark (it has no %(missing)s): restore it with the version that made"
    " it."
)


def _compare(facts: Facts) -> None:
    with connection.cursor() as cursor:
        for table, expected in facts["rows"].items():
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608 (a table's name)
            found = cursor.fetchone()[0]
            if found != expected:
                raise Unusable(
                    _("%(table)s holds %(found)d rows after the restore, and %(expected)d in the backup.")
                    % {"table": table, "found": found, "expected": expected}
                )
    if lost := append_only.missing():
        raise Unusable(_("The append-only tables are not locked: %(triggers)s") % {"triggers": ", ".join(lost)})


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _applied() -> set[tuple[str, str]]:
    return set(MigrationLoader(connection).applied_migrations)


@contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """A folder of our own on the disk that has room for the file."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=".stepmark-backup-", dir=file.resolve().parent)
    except OSError as error:
        raise Unusable(
            _("%(folder)s cannot be written to: %(error)s") % {"folder": file.resolve().parent, "error": error.strerror}
        ) from error
    with folder as name:
        yield Path(name)
