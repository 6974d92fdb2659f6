"""Threads of one process take turns at SQLite's write lock, and nobody keeps the turn."""

import pytest
from django.db import DatabaseError, connection, transaction

from config.sqlite import base
from labeling.models import Project
from tests import factories

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("postgresql" in connection.vendor, reason="SQLite's lock"),
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
