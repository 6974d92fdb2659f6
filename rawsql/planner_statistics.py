"""Keep the planner's statistics current after bulk writes.

A prepared statement keeps its plan until the statistics of a table change. A plan made for almost empty tables made a
claim a hundred times slower after an import (measured). ANALYZE makes all connections plan again, and autovacuum would
do it up to a minute later.
"""

import time

from django.db import connection

CHECK_INTERVAL = 2.0  # seconds between two checks of one long job
GROWTH = 0.5  # changed share of a table that makes it worth analyzing while the job is still running
_GROWTH_AT_THE_END = 0.1
_FEW_ROWS = 500

_FLUSH_COUNTERS = "SELECT pg_stat_force_next_flush()"
_CHANGED_TABLES = """
    SELECT relid::regclass::text
    FROM pg_stat_user_tables JOIN pg_class ON pg_class.oid = relid
    WHERE n_mod_since_analyze > %s + %s * greatest(reltuples, 0)
"""
# A condition for `jobs.scheduler`: a table grew by the share GROWTH.
HAS_GROWN_TABLES = f"EXISTS ({_CHANGED_TABLES % (_FEW_ROWS, GROWTH)})"


class BulkWriteWatch:
    """Analyzes tables that a job has changed heavily, both during the job and when it ends."""

    def __init__(self) -> None:
        self._checked_at = time.monotonic()

    def note_commit(self) -> None:
        if time.monotonic() - self._checked_at >= CHECK_INTERVAL:
            analyze_changed_tables(growth=GROWTH)
            self._checked_at = time.monotonic()

    def finish(self) -> None:
        analyze_changed_tables(growth=_GROWTH_AT_THE_END)


def analyze_changed_tables(*, growth: float = 0.0) -> list[str]:
    """Analyze the tables that changed by more than this share since they were last analyzed, and return their names.

    Does nothing inside a transaction, whose changes are not counted yet.
    """
    if connection.in_atomic_block:
        return []
    tables = find_changed_tables(growth=growth)
    if tables:
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(tables)}")
    return tables


def find_changed_tables(*, growth: float) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_FLUSH_COUNTERS)
        cursor.execute(_CHANGED_TABLES, [_FEW_ROWS, growth])
        return [name for (name,) in cursor.fetchall()]


def analyze_everything() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
