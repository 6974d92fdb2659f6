"""Whether tables are those that this version of Stepmark works with. Versions that were never released change their
tables under the same name of a migration, so that the list of migrations alone does not tell them apart. Reads only."""

import datetime as dt
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from events import append_only, audit_log
from host import postgresql

TableColumns = dict[str, list[str]]


def table_columns() -> TableColumns:
    """The columns of every table that is there."""
    with connection.cursor() as cursor:
        return {table: _columns_of(cursor, table) for table in sorted(connection.introspection.table_names(cursor))}


def _columns_of(cursor: Any, table: str) -> list[str]:
    cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)} LIMIT 0")  # noqa: S608  a table's name
    return sorted(column[0] for column in cursor.description)


def find_missing_column(there: TableColumns) -> str:
    """The first table or column that this version needs and that is not there; empty where nothing is missing."""
    for model in sorted(apps.get_models(), key=lambda each: each._meta.db_table):
        table = model._meta.db_table
        for name in (field.column for field in model._meta.local_concrete_fields):
            if name not in there.get(table, ()):
                return f"{table}.{name}" if table in there else table
    return ""


# Write the whole database into one file while people work, and restore it. The only module that replaces data.


FORMAT = 2

BackupFacts = dict[str, Any]


class Unusable(Exception):
    """The backup cannot be made or restored. The text says why, and what to do."""


def create_backup(*, file: Path, now: dt.datetime) -> BackupFacts:
    """Write the backup. The file appears whole or not at all, readable by its owner alone."""
    with _temporary_folder_beside(file) as folder:
        with _dumped(folder / "database"):
            there = table_columns()
            facts = {
                "format": FORMAT,
                "made_at": now.isoformat(),
                "migrations": sorted(map(list, _applied_migrations())),
                "sha256": _file_digest(folder / "database"),
                "columns": there,
                "rows": {table: _rows_of(table) for table in sorted(append_only.registered_tables() & there.keys())},
            }
        (folder / "facts.json").write_text(json.dumps(facts, indent=1))
        whole = folder / "whole"
        with tarfile.open(whole, "w") as tar:
            tar.add(folder / "facts.json", "facts.json")
            tar.add(folder / "database", "database")
        whole.chmod(0o600)
        os.replace(whole, file)
    return facts


def read_backup(file: Path) -> BackupFacts:
    """What a backup says of itself. Raises Unusable where it cannot be brought back here."""
    try:
        with tarfile.open(file) as tar:
            part = tar.extractfile("facts.json")
            facts: BackupFacts = json.loads(part.read()) if part else {}
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        raise Unusable(_("%(file)s is no backup of Stepmark: %(error)s") % {"file": file, "error": error}) from error
    _check_backup(facts)
    return facts


def has_users() -> bool:
    """Whether there is anything here that a restore would replace."""
    return User._meta.db_table in connection.introspection.table_names() and User.objects.exists()


def restore_backup(*, file: Path, now: dt.datetime) -> BackupFacts:
    """Replace the database by the backup, bring its tables up to date and lock those that are append-only. Raises
    Unusable when what is there afterwards is not what the backup says."""
    facts = read_backup(file)
    with _temporary_folder_beside(file) as folder:
        _unpack_database(file, folder / "database")
        if _file_digest(folder / "database") != facts["sha256"]:
            raise Unusable(_("This backup is damaged: its database is not the one that was written."))
        connection.close()
        # In one transaction: a backup that cannot be read leaves everything as it was.
        options = ["--clean", "--if-exists", "--no-owner", "--single-transaction"]
        _call("pg_restore", *options, str(folder / "database"), database="--dbname=")
    call_command("migrate", interactive=False, verbosity=0)
    if missing := find_missing_column(table_columns()):
        raise Unusable(_OTHER_TABLES % {"missing": missing})
    _compare_row_counts(facts)
    audit_log.log_event(what="backup.restored", by=None, now=now, detail={"made_at": facts["made_at"]})
    return facts


def _unpack_database(file: Path, target: Path) -> None:
    """The bytes alone: names, owners and links of a file from elsewhere are not believed."""
    with tarfile.open(file) as tar, target.open("wb") as copy:
        part = tar.extractfile("database")
        if part is None:
            raise Unusable(_("This backup is damaged: its database is not the one that was written."))
        shutil.copyfileobj(part, copy)


def _check_backup(facts: BackupFacts) -> None:
    if facts.get("format") != FORMAT:
        raise Unusable(_("This backup has another format: restore it with the version of Stepmark that made it."))
    known = set(MigrationLoader(None).disk_migrations)
    if newer := {tuple(each) for each in facts["migrations"]} - known:
        raise Unusable(
            _("This backup was made by a newer version of Stepmark (it knows %(migration)s): update first.")
            % {"migration": ".".join(min(newer))}
        )
    is_whole = known <= {tuple(each) for each in facts["migrations"]}
    if is_whole and "columns" in facts and (missing := find_missing_column(facts["columns"])):
        raise Unusable(_OTHER_TABLES % {"missing": missing})


_OTHER_TABLES = gettext_lazy(
    "This backup was made by another version of Stepmark (it has no %(missing)s): restore it with the version that made"
    " it."
)


def _compare_row_counts(facts: BackupFacts) -> None:
    for table, expected in facts["rows"].items():
        if (found := _rows_of(table)) != expected:
            raise Unusable(
                _("%(table)s holds %(found)d rows after the restore, and %(expected)d in the backup.")
                % {"table": table, "found": found, "expected": expected}
            )
    if lost := append_only.missing_triggers():
        raise Unusable(_("The append-only tables are not locked: %(triggers)s") % {"triggers": ", ".join(lost)})


@contextmanager
def _dumped(target: Path) -> Iterator[None]:
    """Dump one moment of the database. Inside the block, queries see the same moment."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        _call("pg_dump", "--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={target}")
        yield


def _rows_of(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608 (a table's name)
        return int(cursor.fetchone()[0])


def _call(name: str, *arguments: str, database: str = "") -> None:
    settings = connection.settings_dict
    done = subprocess.run(  # noqa: S603 (our own arguments)
        [_program(name), *arguments, f"{database}{settings['NAME']}"],
        env={**os.environ, **_address_of(settings)},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise Unusable(f"{name}: {' '.join(done.stderr.split())[:1000]}")


def _program(name: str) -> str | Path:
    """Choose the program of the server's major version: the installed one or the wheel's. Otherwise a newer one."""
    connection.ensure_connection()
    server = connection.pg_version // 10_000  # type: ignore[attr-defined]  # only PostgreSQL has it
    folder = postgresql.programs()
    found = [program for program in (folder and folder / name, shutil.which(name)) if program]
    versions = {program: postgresql.major_version(program) for program in found}
    if usable := [program for program in found if versions[program] >= server]:
        return min(usable, key=lambda program: versions[program])
    raise Unusable(
        _("%(program)s for PostgreSQL %(version)s was not found: install PostgreSQL's client programs of that version.")
        % {"program": name, "version": server}
    )


def _address_of(settings: dict[str, Any]) -> dict[str, str]:
    """Return the environment for PostgreSQL's programs. An argument with the password could be read by every user."""
    given = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    options = {"PGSSLMODE": settings["OPTIONS"].get("sslmode"), "PGSSLROOTCERT": settings["OPTIONS"].get("sslrootcert")}
    wanted = {**{name: settings[key] for name, key in given.items()}, **options}
    return {name: str(value) for name, value in wanted.items() if value}


def _file_digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _applied_migrations() -> set[tuple[str, str]]:
    return set(MigrationLoader(connection).applied_migrations)


@contextmanager
def _temporary_folder_beside(file: Path) -> Iterator[Path]:
    """A folder of our own on the disk that has room for the file."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=".stepmark-backup-", dir=file.resolve().parent)
    except OSError as error:
        raise Unusable(
            _("%(folder)s cannot be written to: %(error)s") % {"folder": file.resolve().parent, "error": error.strerror}
        ) from error
    with folder as name:
        yield Path(name)
