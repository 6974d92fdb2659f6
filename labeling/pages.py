"""Set how tightly PostgreSQL packs the rows of a table. Done after every migrate, since no model can say it."""

from typing import Any

from django.db import connections

# Claims update entries: where a page has room for the new version, no index is written.
_FILLED = {"labeling_queueentry": 80}
_TOLD = "SELECT 1 FROM pg_class WHERE relname = %s AND %s = ANY (reloptions)"


def on_migrated(*, using: str, **_: Any) -> None:
    with connections[using].cursor() as cursor:
        for table, percent in _FILLED.items():
            cursor.execute(_TOLD, [table, f"fillfactor={percent}"])
            if cursor.fetchone() is None:
                cursor.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")
