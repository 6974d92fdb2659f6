"""Claim, record and submit stay cheap on connections that planned their statements for almost empty tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from labeling import assignments, queue
from labeling.models import Assignment, Project, Rater
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.fault]
STEPS = ["Count the apples.", "There are two.", "So the answer is two."]


def write_file(folder: Path, name: str, n: int) -> Path:
    file = folder / f"{name}.jsonl"
    records = ({"problem": f"Sum {name} {i}: what is {i} + {i}?", "steps": STEPS} for i in range(n))
    file.write_text("\n".join(map(json.dumps, records)))
    return file


def count_rows_read(act: Callable[[], Any]) -> tuple[int, Any]:
    """Return how many rows PostgreSQL read for this, and what it returned."""
    with transaction.atomic():
        before = count_rows_of_session()
        result = act()
        return count_rows_of_session() - before, result


def count_rows_of_session() -> int:
    """Return a count that may begin before this transaction, because PostgreSQL reports at most once a second."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables"
        )
        ((count,),) = cursor.fetchall()
    return int(count)


def measure_cycle(rater: Rater) -> dict[str, int]:
    """Return the rows read for one trace."""
    now = timezone.now()
    claim_rows, claimed = count_rows_read(lambda: queue.claim_trace(rater_id=rater.pk, now=now, opened=True))
    client = WorkPageClient(Assignment.objects.get(pk=claimed.assignment_id))
    record_rows, _ = count_rows_read(lambda: client.rate([1, 1, 1], now=now))
    submit_rows, _ = count_rows_read(lambda: assignments.submit(**client.place, now=now, by=rater.user))
    return {"claim": claim_rows, "record": record_rows, "submit": submit_rows}


def test_growth_under_an_open_connection_does_not_slow_raters(tmp_path: Path) -> None:
    call_command("import_traces", write_file(tmp_path, "few", 30), project="growth", verbosity=0)
    rater = factories.make_rater(Project.objects.get(slug="growth"))
    first = [measure_cycle(rater) for _ in range(3)][-1]
    call_command("import_traces", write_file(tmp_path, "many", 3000), project="growth", verbosity=0)
    later = [measure_cycle(rater) for _ in range(3)]
    for name, rows in first.items():
        assert max(cycle[name] for cycle in later) <= 2 * rows + 50, (first, later)
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'labeling_trace'")
        assert cursor.fetchone()[0] > 2000
