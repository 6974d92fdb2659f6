"""The database refuses changes of append-only tables."""

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import IntegrityError, connection
from django.db.models import PROTECT, ForeignKey, ProtectedError

from events import append_only, audit_log
from events.models import Event
from labeling.models import Guideline
from tests import factories


def log() -> Event:
    audit_log.log_event(what="project.opened", by=None, now=factories.NOW)
    return Event.objects.latest("pk")


def count_triggers() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_trigger WHERE tgname LIKE '%_refuses_%'")
        return int(cursor.fetchone()[0])


@pytest.mark.django_db
def test_every_registered_table_has_triggers() -> None:
    assert append_only.registered_tables() == {
        "events_event",
        "exports_splitassignment",
        "labeling_ratingedit",
        "labeling_submission",
        "labeling_guideline",
        "labeling_consensus",
        "labeling_ratermodelfit",
        "labeling_manifest",
        "labeling_manifestrow",
    }
    assert append_only.missing_triggers() == []
    assert count_triggers() == 3 * 9


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events_event SET what = 'project.closed'",
        "DELETE FROM events_event",
        "INSERT INTO events_event (id, at, what, subject, detail) SELECT id, at, 'x', '', '{}' FROM events_event"
        " WHERE true ON CONFLICT (id) DO UPDATE SET what = 'x'",
    ],
)
def test_changes_are_refused(statement: str) -> None:
    log()
    with pytest.raises(IntegrityError, match="events_event"), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.django_db
def test_truncate_is_refused() -> None:
    """TRUNCATE does not fire row triggers."""
    log()
    with pytest.raises(IntegrityError, match="events_event"), connection.cursor() as cursor:
        cursor.execute("TRUNCATE events_event CASCADE")


@pytest.mark.django_db
def test_cascade_into_an_empty_table_is_permitted() -> None:
    project = factories.make_project()
    project.delete()
    project = factories.make_project()
    Guideline.objects.create(project=project, version=1, body="Rate.", published_at=factories.NOW)
    with pytest.raises(ProtectedError):
        project.delete()


@pytest.mark.django_db
def test_foreign_keys_of_append_only_tables_protect() -> None:
    """SET_NULL is an update and CASCADE a deletion. Both would fail in the database instead of in Django."""
    foreign_keys = {
        f"{model._meta.db_table}.{field.name}": field.remote_field.on_delete
        for model in apps.get_models()
        if model._meta.db_table in append_only.registered_tables()
        for field in model._meta.get_fields()
        if isinstance(field, ForeignKey)
    }
    assert "labeling_guideline.published_by" in foreign_keys
    assert {name for name, on_delete in foreign_keys.items() if on_delete is not PROTECT} == set()


@pytest.mark.fault
@pytest.mark.django_db
def test_migrate_creates_missing_triggers() -> None:
    with connection.cursor() as cursor:
        for name, (table, _operation) in append_only.required_triggers().items():
            cursor.execute(f'DROP TRIGGER "{name}" ON "{table}"')
    assert len(append_only.missing_triggers()) == 3 * 9
    call_command("migrate", verbosity=0)
    assert append_only.missing_triggers() == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", [1, 2])
def test_tests_with_real_transactions_start_empty_and_locked(turn: int) -> None:
    assert not Event.objects.exists()
    assert append_only.missing_triggers() == []
    log()
