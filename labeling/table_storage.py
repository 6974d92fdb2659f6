"""Set how tightly PostgreSQL packs the rows of a table. Done after every migrate, since no model can say it."""

from typing import Any

from django.db import connections

# Claims update entries: where a page has room for the new version, no index is written.
_FILL_FACTORS = {"labeling_queueentry": 80}
_IS_SET = "SELECT 1 FROM pg_class WHERE relname = %s AND %s = ANY (reloptions)"


def set_fill_factors(*, using: str, **_: Any) -> None:
    with connections[using].cursor() as cursor:
        for table, percent in _FILL_FACTORS.items():
            cursor.execute(_IS_SET, [table, f"fillfactor={percent}"])
            if cursor.fetchone() is None:
                cursor.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")
