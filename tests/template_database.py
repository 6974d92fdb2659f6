"""Migrate the database of one test process, and copy it for the others of a run.

Only on a server that the run started: another one may have the template of an older checkout.
"""

import os
from typing import Any

from django.conf import settings
from django.db.backends.postgresql.creation import DatabaseCreation

TEMPLATE = "migrated_for_tests"
_LOCK = 20261118  # any number


def install() -> None:
    """Replace how this process creates its database."""
    if "PYTEST_XDIST_WORKER" in os.environ and os.environ.get("STEPMARK_ACCEPT_DATA_LOSS") == "yes":
        creation: Any = DatabaseCreation
        creation.create_test_db = _make_creator(creation.create_test_db)


def _make_creator(migrate: Any) -> Any:
    def create(creation: Any, *arguments: Any, **options: Any) -> str:
        with creation._nodb_cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])  # this connection ends with the block
            if creation._database_exists(cursor, TEMPLATE):
                return _copy_template(creation, cursor)
            name = str(migrate(creation, *arguments, **options))
            creation.connection.close()
            creation.connection.close_pool()
            cursor.execute(f'CREATE DATABASE "{TEMPLATE}" TEMPLATE "{name}"')
            return name

    return create


def _copy_template(creation: Any, cursor: Any) -> str:
    name, connection = creation._get_test_db_name(), creation.connection
    cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
    cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"')
    connection.close()
    settings.DATABASES[connection.alias]["NAME"] = connection.settings_dict["NAME"] = name
    return str(name)
