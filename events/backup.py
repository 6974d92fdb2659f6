"""Back up the database into one file while people work, and restore it. Only this module replaces the whole database.

A backup lists the columns of all tables. Before release 0.1.0, versions change tables without a new migration, so the
list of migrations does not identify the version.
"""

import datetime as dt
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.utils.translation import gettext as _

from events import append_only, audit_log
from host import disk, postgresql
from rawsql import planner_statistics

FORMAT = 2

_after_restore: list[Callable[..., object]] = []
_find_missing_files: list[Callable[[], Iterable[str]]] = []

# Rows that give access. Backups leave them out, so that a backup grants no access and a restore does not revive revoked
# links.
KEY_TABLES = frozenset({"accounts_session", "accounts_loginlink", "accounts_apitoken", "people_invitation"})

TableColumns = dict[str, list[str]]
BackupFacts = dict[str, Any]


class Unusable(Exception):
    """The backup cannot be made or restored. `code` names the problem; the message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def call_after_restore(function: Callable[..., object]) -> None:
    """Call a function after every restore, with `now` and with `made_at`, the time of the backup. Apps use this in
    `AppConfig.ready`."""
    _after_restore.append(function)


def look_for_files_after_restore(function: Callable[[], Iterable[str]]) -> None:
    """Call a function after every restore by command. It returns a line for each thing whose files are not there: a
    backup contains the database only."""
    _find_missing_files.append(function)


def describe_missing_files() -> list[str]:
    return [line for function in _find_missing_files for line in function()]


def create_backup(*, file: Path, now: dt.datetime) -> BackupFacts:
    """Write the backup atomically, readable by its owner only."""
    with _temporary_folder_beside(file) as folder:
        with _dumped_database(folder / "database"):
            columns = table_columns()
            facts = {
                "format": FORMAT,
                "made_at": now.isoformat(),
                "migrations": sorted(map(list, MigrationLoader(connection).applied_migrations)),
                "sha256": _file_digest(folder / "database"),
                "columns": columns,
                "rows": {
                    table: _count_rows(table) for table in sorted(append_only.registered_tables() & columns.keys())
                },
            }
        (folder / "facts.json").write_text(json.dumps(facts, indent=1))
        archive = folder / "archive"
        with tarfile.open(archive, "w") as tar:
            tar.add(folder / "facts.json", "facts.json")
            tar.add(folder / "database", "database")
        archive.chmod(0o600)
        # A power failure must leave the earlier file or the whole new one.
        disk.sync_file(archive)
        os.replace(archive, file)
        disk.sync_file(file.resolve().parent)
    return facts


def read_backup(file: Path) -> BackupFacts:
    """Return the facts of a backup. Raise Unusable if this version cannot restore it."""
    try:
        with tarfile.open(file) as tar:
            part = tar.extractfile("facts.json")
            facts: BackupFacts = json.loads(part.read()) if part else {}
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        message = _("%(file)s is not a Stepmark backup: %(error)s") % {"file": file, "error": error}
        raise Unusable("not_a_backup", message) from error
    _check_version(facts)
    return facts


def verify_backup(file: Path) -> BackupFacts:
    """Read a whole backup, as a restore would, without a database. Raise Unusable if this version cannot restore it."""
    facts = read_backup(file)
    with _unpacked_database(file, facts) as database:
        _run_program("pg_restore", f"--file={os.devnull}", str(database))
    return facts


def has_users() -> bool:
    """Return whether the database has data that a restore would replace."""
    users = get_user_model()
    return users._meta.db_table in connection.introspection.table_names() and users.objects.exists()


def restore_backup(*, file: Path, now: dt.datetime) -> BackupFacts:
    """Replace the database, migrate it, and lock its append-only tables. Raise Unusable if the result differs from the
    facts of the backup."""
    facts = read_backup(file)
    with _unpacked_database(file, facts) as database:
        connection.close()
        # In one transaction: a dump that cannot be read changes nothing.
        options = ["--clean", "--if-exists", "--no-owner", "--single-transaction"]
        _call("pg_restore", *options, str(database))
    call_command("migrate", interactive=False, verbosity=0)
    if missing := find_missing_column(table_columns()):
        raise _other_version(missing)
    _compare_row_counts(facts)
    planner_statistics.analyze_everything()  # a restored database has no statistics
    audit_log.log_event(what="backup.restored", by=None, now=now, detail={"made_at": facts["made_at"]})
    for function in _after_restore:
        function(now=now, made_at=dt.datetime.fromisoformat(facts["made_at"]))
    return facts


def table_columns() -> TableColumns:
    """Return the columns of every table in the database."""
    columns: TableColumns = {}
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names(cursor)):
            columns[table] = sorted(each.name for each in connection.introspection.get_table_description(cursor, table))
    return columns


def find_missing_column(columns: TableColumns) -> str:
    """Return the first table or column that this version needs and the database lacks; empty if none is missing."""
    for model in sorted(apps.get_models(), key=lambda each: each._meta.db_table):
        table = model._meta.db_table
        for name in (field.column for field in model._meta.local_concrete_fields):
            if name not in columns.get(table, ()):
                return f"{table}.{name}" if table in columns else table
    return ""


@contextmanager
def _unpacked_database(file: Path, facts: BackupFacts) -> Iterator[Path]:
    """Copy the dump out of a backup, and compare its checksum. Only the bytes: names, owners, and links in the archive
    are not trusted."""
    with _temporary_folder_beside(file) as folder:
        target = folder / "database"
        with tarfile.open(file) as tar, target.open("wb") as copy:
            part = tar.extractfile("database") if "database" in tar.getnames() else None
            if part is None:
                raise _damaged()
            shutil.copyfileobj(part, copy)
        if _file_digest(target) != facts["sha256"]:
            raise _damaged()
        yield target


def _check_version(facts: BackupFacts) -> None:
    if facts.get("format") != FORMAT:
        message = _("This backup is in a different format. Restore it with the version of Stepmark that created it.")
        raise Unusable("format", message)
    known = set(MigrationLoader(None).disk_migrations)
    applied = {tuple(each) for each in facts["migrations"]}
    if newer := applied - known:
        message = _(
            "This backup was made by a newer version of Stepmark (with migration %(migration)s). Update Stepmark first."
        )
        raise Unusable("newer", message % {"migration": ".".join(min(newer))})
    if known <= applied and "columns" in facts and (missing := find_missing_column(facts["columns"])):
        raise _other_version(missing)


def _damaged() -> Unusable:
    return Unusable("damaged", _("This backup is damaged: its checksum does not match. Use another backup."))


def _other_version(missing: str) -> Unusable:
    message = _(
        "This backup was made by another version of Stepmark: %(missing)s is missing. Restore it with the version that"
        " made it."
    )
    return Unusable("other_version", message % {"missing": missing})


def _compare_row_counts(facts: BackupFacts) -> None:
    for table, expected in facts["rows"].items():
        if (n_rows := _count_rows(table)) != expected:
            message = _("After the restore, %(table)s has %(found)d rows instead of %(expected)d. Restore again.")
            raise Unusable("rows", message % {"table": table, "found": n_rows, "expected": expected})
    if missing := append_only.missing_triggers():
        message = _("The append-only tables are not locked. These triggers are missing: %(triggers)s")
        raise Unusable("triggers", message % {"triggers": ", ".join(missing)})


@contextmanager
def _dumped_database(target: Path) -> Iterator[None]:
    """Dump a snapshot of the database. Queries in the block see the same snapshot."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        left_out = [f"--exclude-table-data={table}" for table in sorted(KEY_TABLES)]
        _call("pg_dump", "--format=custom", "--no-owner", *left_out, f"--snapshot={snapshot}", f"--file={target}")
        yield


def _count_rows(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608 (a table's name)
        return int(cursor.fetchone()[0])


def _call(name: str, *arguments: str) -> None:
    settings = connection.settings_dict
    _run_program(name, *arguments, f"--dbname={settings['NAME']}", environment=_connection_environment(settings))


def _run_program(name: str, *arguments: str, environment: dict[str, str] | None = None) -> None:
    result = subprocess.run(  # noqa: S603 (our own arguments)
        [_find_program(name), *arguments],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if result.returncode:
        raise Unusable("program", f"{name}: {' '.join(result.stderr.split())[:1000]}")


def _find_program(name: str) -> str | Path:
    """Find the program with the server's major version, or else a newer one, in the wheel or on the path."""
    connection.ensure_connection()
    server = connection.pg_version // 10_000  # type: ignore[attr-defined]  # only PostgreSQL has it
    folder = postgresql.programs()
    candidates = [program for program in (folder and folder / name, shutil.which(name)) if program]
    versions = {program: postgresql.major_version(program) for program in candidates}
    if usable := [program for program in candidates if versions[program] >= server]:
        return min(usable, key=lambda program: versions[program])
    message = _("%(program)s for PostgreSQL %(version)s was not found. Install the client programs of that version.")
    raise Unusable("program", message % {"program": name, "version": server})


def _connection_environment(settings: dict[str, Any]) -> dict[str, str]:
    """Return the environment for PostgreSQL's programs. Other users could read a password in the arguments."""
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    options = {"PGSSLMODE": settings["OPTIONS"].get("sslmode"), "PGSSLROOTCERT": settings["OPTIONS"].get("sslrootcert")}
    values = {**{name: settings[key] for name, key in names.items()}, **options}
    return {name: str(value) for name, value in values.items() if value}


def _file_digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@contextmanager
def _temporary_folder_beside(file: Path) -> Iterator[Path]:
    """Make a temporary folder on the disk of the file."""
    parent = file.resolve().parent
    try:
        folder = tempfile.TemporaryDirectory(prefix=".stepmark-backup-", dir=parent)
    except OSError as error:
        message = _("Cannot write to %(folder)s: %(error)s") % {"folder": parent, "error": error.strerror}
        raise Unusable("folder", message) from error
    with folder as name:
        yield Path(name)
