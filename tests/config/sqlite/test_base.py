"""Threads of one process take turns at SQLite's write lock, and nobody keeps the turn. What a submit does meanwhile
reads the rows of its trace alone, however many there are."""

import pytest
from django.db import DatabaseError, connection, transaction

from config.sqlite import base
from labeling.models import Project
from labeling.quality import tallies
from tests import factories

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("postgresql" in connection.vendor, reason="SQLite's own"),
]


def is_free() -> bool:
    free = base._turn.acquire(blocking=False)
    if free:
        base._turn.release()
    return free


def test_turn_is_taken_inside_a_transaction_and_given_back_after_it() -> None:
    with transaction.atomic():
        assert not is_free()
        with transaction.atomic():
            factories.make_project()
        assert not is_free()
    assert is_free()


def test_turn_is_given_back_by_whoever_fails() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        connection.cursor().execute("SELECT nothing FROM nowhere")
    assert is_free()
    with transaction.atomic():
        connection.close()
    assert is_free()


def test_turn_of_another_is_waited_for_no_longer_than_patience_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_PATIENCE_SECONDS", 0.01)
    with base._turn, transaction.atomic():  # a turn that nobody gives back
        factories.make_project()
    assert is_free()
    assert Project.objects.count() == 1


def test_count_of_a_trace_reads_no_steps_of_others() -> None:
    for _ in range(20):
        factories.make_trace(factories.make_project(), [f"Step {n}." for n in range(20)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute(f"EXPLAIN QUERY PLAN {tallies._COUNT_ON_SQLITE}", [1])
        plan = [detail for *_, detail in cursor.fetchall()]
    assert any(line.startswith("SEARCH st USING INDEX") and line.endswith("(trace_id=?)") for line in plan)
    # Either reads the whole table: the first in the order of its index, the second to sort out beforehand.
    assert not [line for line in plan if line.startswith(("SCAN st USING", "BLOOM FILTER ON st"))]
