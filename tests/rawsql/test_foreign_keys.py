"""Foreign keys that are checked in bulk hold as well as those that PostgreSQL checks row by row."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import ForeignObjectRel

import rawsql
from labeling.models import Option, Step, Trace
from rawsql import foreign_keys
from tests import factories

DELETE_STEPS = "DELETE FROM labeling_step WHERE trace_id = ANY (%(traces)s) RETURNING id"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@contextmanager
def restricted_role() -> Iterator[None]:
    """Work as a role that may not turn triggers off, as on most servers."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE plain; GRANT ALL ON ALL TABLES IN SCHEMA public TO plain; SET LOCAL ROLE plain")
        yield
        cursor.execute("RESET ROLE")


def delete_steps(trace: Trace) -> list[int]:
    with transaction.atomic():
        return foreign_keys.delete_rows("labeling_step", DELETE_STEPS, {"traces": [trace.pk]})


def delete_and_check(trace: Trace) -> None:
    """Delete the steps and let PostgreSQL check their references now instead of at the commit."""
    with transaction.atomic():
        delete_steps(trace)
        connection.check_constraints()


@pytest.mark.django_db
def test_rows_without_references_are_deleted() -> None:
    trace, other = (factories.make_trace(factories.make_project()) for _ in range(2))
    steps = set(Step.objects.filter(trace=trace).values_list("pk", flat=True))
    Option.objects.filter(step__trace=trace).delete()
    assert set(delete_steps(trace)) == steps
    assert set(Step.objects.values_list("trace", flat=True)) == {other.pk}


@pytest.mark.django_db
def test_rows_that_others_refer_to_stay() -> None:
    trace = factories.make_trace(factories.make_project())
    n_steps = Step.objects.count()
    with pytest.raises(IntegrityError, match="labeling_option"):
        delete_steps(trace)
    assert Step.objects.count() == n_steps


@pytest.mark.django_db
def test_every_foreign_key_to_a_table_is_checked() -> None:
    found = {(each.table, each.column) for each in foreign_keys._list_referring_columns("labeling_trace")}
    related = {
        (relation.related_model._meta.db_table, str(relation.field.column))
        for relation in Trace._meta.get_fields(include_hidden=True)
        if isinstance(relation, ForeignObjectRel)
    }
    assert found == related


@pytest.mark.django_db
def test_triggers_are_on_again_afterward() -> None:
    trace = factories.make_trace(factories.make_project())
    with transaction.atomic():
        with foreign_keys.row_checks_skipped():
            pass
        assert rawsql.fetch_rows("SHOW session_replication_role", {}) == [("origin",)]
    Option.objects.filter(step__trace=trace).delete()
    delete_steps(trace)
    assert rawsql.fetch_rows("SHOW session_replication_role", {}) == [("origin",)]


@pytest.mark.django_db
def test_tables_with_own_triggers_keep_them() -> None:
    assert foreign_keys.may_skip_row_checks("labeling_step")
    assert not foreign_keys.may_skip_row_checks("events_event")  # append-only


@pytest.mark.django_db
def test_a_role_without_the_privilege_has_its_rows_checked() -> None:
    trace = factories.make_trace(factories.make_project())
    with restricted_role():
        assert not foreign_keys.may_skip_row_checks("labeling_step")
        with pytest.raises(IntegrityError):
            delete_and_check(trace)
        Option.objects.filter(step__trace=trace).delete()
        assert delete_steps(trace)


@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
def test_a_reference_added_at_the_same_time_is_found() -> None:
    """Another transaction adds an option of a step and commits while the deletion waits for it."""
    trace = factories.make_trace(factories.make_project())
    Option.objects.filter(step__trace=trace).delete()
    step, n_steps = Step.objects.filter(trace=trace)[0], Step.objects.count()
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    parameters.pop("context", None)
    with psycopg.connect(**parameters) as other:
        other.execute(
            "INSERT INTO labeling_option (step_id, position, origin, text) VALUES (%s, 0, 'model', 'x')", [step.pk]
        )
        other.execute("SET CONSTRAINTS ALL IMMEDIATE")  # takes the lock that it would take at the commit

        def commit_when_the_deletion_waits() -> None:
            with psycopg.connect(**parameters, autocommit=True) as watcher:
                while watcher.execute(WAITING).fetchall() == [(0,)]:
                    pass
            other.commit()

        thread = threading.Thread(target=commit_when_the_deletion_waits)
        thread.start()
        with pytest.raises(IntegrityError):
            delete_steps(trace)
        thread.join()
    assert Step.objects.count() == n_steps
