"""Writes SQLite's log back into its file, between a job's chunks and with each sweep.

Otherwise whoever's transaction fills the log does it at its commit, and waits for the disk: now and then a rating takes
ten times as long as others. Written back in passing it keeps nobody from reading or writing.
"""

import time

from django.db import connection

OFTEN = 0.25  # seconds: the pages that many transactions change are written once for all of them
_wrote_at = 0.0


def between_chunks() -> float:
    """Unless it was done a moment ago. Says how many seconds it took."""
    global _wrote_at
    began = time.monotonic()
    if began - _wrote_at < OFTEN or not write_back():
        return 0.0
    _wrote_at = time.monotonic()
    return _wrote_at - began


def write_back() -> bool:
    """As much as no reader still needs. Says whether it could be tried: not on PostgreSQL, not inside of a
    transaction."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        return False
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
    return True
