"""Models and migrations say the same, and nothing has been released yet."""

import pytest
from django.core.management import call_command

from tests.conventions.rule import files


@pytest.mark.django_db
def test_models_and_migrations_say_the_same() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_every_room_has_one_migration_until_the_first_release() -> None:
    found = {path for path in files() if "/migrations/" in path and not path.endswith("__init__.py")}
    assert found
    assert not [path for path in found if not path.endswith("/0001_initial.py")]
