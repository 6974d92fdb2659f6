"""Models and migrations agree, and nothing has been released yet."""

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from tests.conventions.rule import list_files

# The names of constraints and indexes, among others.
RULES = "SELECT conname::text FROM pg_constraint UNION SELECT indexname::text FROM pg_indexes"


@pytest.mark.django_db
def test_models_and_migrations_say_the_same() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db
def test_the_database_of_tests_holds_all_that_the_models_say() -> None:
    """The tests run the migrations in a faster way than Django does; see supervisor/first_migration.py."""
    with connection.cursor() as cursor:
        cursor.execute(RULES)
        held = {name for (name,) in cursor.fetchall()}
        for meta in [model._meta for model in apps.get_models()]:
            cursor.execute(f'SELECT * FROM "{meta.db_table}" LIMIT 0')
            columns = {column[0] for column in cursor.description}
            assert columns == {field.column for field in meta.local_concrete_fields}
            assert {rule.name for rule in (*meta.constraints, *meta.indexes)} <= held


def test_every_app_has_one_migration_until_the_first_release() -> None:
    found = {path for path in list_files() if "/migrations/" in path and not path.endswith("__init__.py")}
    assert found
    assert not [path for path in found if not path.endswith("/0001_initial.py")]
