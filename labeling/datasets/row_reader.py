"""Read the rows of a manifest, a chunk at a time.

Threads with their own connections read the next chunks while the caller writes the current one, so that the server and
this process work at the same time. No transaction stays open between chunks. Inside a transaction, whose rows no other
connection can see, chunks are read one after the other.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

import rawsql
from formats.rows import SEPARATOR, CompactRow, ExportRow, RowFacts
from labeling.datasets import row_rebuilder
from labeling.models import Manifest

CHUNK = 500
READERS = 3
# Every lookup uses an index, and ranges are read in its order. Without these settings, a freshly filled table without
# statistics is scanned as a whole for each chunk.
_PLANS = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "jit")
_INDEX_PLAN_SETTINGS = "; ".join(f"SET {name} = off" for name in _PLANS)

_FACTS = rawsql.load_sql(__file__, "row_facts.sql")
_TEXTS = rawsql.load_sql(__file__, "row_texts.sql")
_RATINGS = rawsql.load_sql(__file__, "row_ratings.sql")
_RATING_RANGES = rawsql.load_sql(__file__, "row_rating_ranges.sql")


class RowTexts(NamedTuple):
    position: int
    n_options: int
    n_texts: int
    first_step: int
    last: int
    n_others: int
    extra: str | None
    joined: str


class RowRatings(NamedTuple):
    position: int
    first_step: int
    last_step: int
    n_turns: int
    n_others: int
    times: str | None
    cells: str


class RowRatingRange(NamedTuple):
    position: int
    first_step: int
    last_step: int
    n_turns: int
    times: str | None
    chosen: str
    judged: str


def read_chunks(manifest: Manifest, *, start: int, stop: int, size: int = CHUNK) -> Iterator[list[ExportRow]]:
    """Yield the rows from position `start` up to `stop`, in order."""
    spans = [(at, min(at + size, stop)) for at in range(start, stop, size)]
    if connection.in_atomic_block:
        yield from (_read_chunk(manifest.pk, *span) for span in spans)
    else:
        yield from _read_ahead(manifest.pk, spans)


def _read_ahead(manifest_id: int, spans: list[tuple[int, int]]) -> Iterator[list[ExportRow]]:
    """Read in threads, at most one chunk per thread ahead, to limit memory."""
    opened: list[BaseDatabaseWrapper] = []
    readers = ThreadPoolExecutor(READERS, initializer=_force_index_plans, initargs=(opened,))
    pending: deque[Future[list[ExportRow]]] = deque()
    try:
        for span in spans:
            pending.append(readers.submit(_read_chunk, manifest_id, *span))
            if len(pending) > READERS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        readers.shutdown(cancel_futures=True)
        for thread_connection in opened:
            thread_connection.close()


def _force_index_plans(opened: list[BaseDatabaseWrapper]) -> None:
    """Set up the connection of this thread. The thread that started it closes it."""
    connection.inc_thread_sharing()
    with connection.cursor() as cursor:
        cursor.execute(_INDEX_PLAN_SETTINGS)
    opened.append(connections[connection.alias])


def _read_chunk(manifest_id: int, start: int, stop: int) -> list[ExportRow]:
    parameters = {"manifest": manifest_id, "start": start, "stop": stop}
    rows = rawsql.fetch_named(RowFacts, _FACTS, parameters)
    texts = {row.position: row for row in rawsql.fetch_named(RowTexts, _TEXTS, parameters)}
    ratings = _read_ratings(parameters, [facts.position for facts in rows if facts.submission is not None])
    compact = {
        position: _build_compact_row(texts[position], ratings[position])
        for position in texts.keys() & ratings.keys()
        if _is_compact(texts[position], ratings[position])
    }
    others = [facts for facts in rows if facts.position not in compact]
    rebuilt = row_rebuilder.rebuild_rows(manifest_id, others) if others else {}
    return [rebuilt.get(facts.position) or ExportRow(facts, compact[facts.position]) for facts in rows]


def _read_ratings(parameters: dict[str, int], positions: Sequence[int]) -> dict[int, RowRatings]:
    ratings = {
        row.position: RowRatings(
            row.position, row.first_step, row.last_step, row.n_turns, 0, row.times, _join_cells(row.chosen, row.judged)
        )
        for row in rawsql.fetch_named(RowRatingRange, _RATING_RANGES, parameters)
    }
    missing = [position for position in positions if position not in ratings]
    if missing:
        lookup: dict[str, Any] = {"manifest": parameters["manifest"], "positions": missing}
        ratings |= {row.position: row for row in rawsql.fetch_named(RowRatings, _RATINGS, lookup)}
    return ratings


def _join_cells(chosen: str, judged: str) -> str:
    pairs = zip(chosen.split(";"), judged.split(";"), strict=True)
    return ";".join([f"0,{place},{judgment}" for place, judgment in pairs])


def _is_compact(texts: RowTexts, ratings: RowRatings) -> bool:
    """Return whether a `CompactRow` can express the row."""
    return (
        texts.n_options == texts.n_texts
        and texts.first_step == texts.last
        and not texts.n_others
        and not ratings.n_others
        and ratings.first_step == texts.first_step
        and ratings.last_step - texts.first_step == ratings.n_turns - 1
        and texts.joined.count(SEPARATOR) == texts.n_texts - 1
    )


def _build_compact_row(texts: RowTexts, ratings: RowRatings) -> CompactRow:
    return CompactRow(texts.joined, texts.n_texts, texts.extra, texts.first_step, ratings.times, ratings.cells)
