"""Set the fill factor of tables after each migrate, because a model cannot define it."""

from typing import Any

from django.db import connections

# Claims update entries. If a page has room for the new row version, PostgreSQL writes to no index.
_FILL_FACTORS = {"labeling_queueentry": 80}
_IS_SET = "SELECT 1 FROM pg_class WHERE relname = %s AND %s = ANY (reloptions)"


def set_fill_factors(*, using: str, **_: Any) -> None:
    with connections[using].cursor() as cursor:
        for table, percent in _FILL_FACTORS.items():
            cursor.execute(_IS_SET, [table, f"fillfactor={percent}"])
            if cursor.fetchone() is None:
                cursor.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")
