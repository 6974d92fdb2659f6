"""Freeze the rows that a snapshot or a training run reads, and stream them. Only this module writes `Manifest` and
`ManifestRow`.

A manifest refers to immutable revisions, in order. Streaming it again gives the same records, even after relabeling.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import QuerySet

from accounts.models import User
from formats.records import TraceRecord
from formats.rows import ExportRow
from labeling.datasets import row_reader, selection
from labeling.datasets.selection import ExclusionRule, ManifestFilters, ScoreSource
from labeling.models import Manifest, Project
from labeling.traces import bulk_insert


def freeze_manifest(
    *,
    project: Project,
    filters: ManifestFilters,
    purpose: str,
    now: dt.datetime,
    by: User | None,
    exclusions: Sequence[ExclusionRule] = (),
    score_source: ScoreSource | None = None,
    by_trace: bool = False,
) -> Manifest:
    """Store the ordered list of selected rows, and count the excluded ones by reason. Rows are ordered by submission,
    or grouped by trace."""
    rows = selection.annotate_exclusion_reason(selection.select_rows(project, filters, score_source), exclusions)
    with transaction.atomic():
        # Write the rows first: a manifest is append-only and includes their number.
        table = Manifest._meta.db_table
        pk = next(bulk_insert.new_ids([table])[table])
        counts = _write_rows(pk, rows, by_trace=by_trace)
        return Manifest.objects.create(
            pk=pk,
            project=project,
            purpose=purpose,
            made_at=now,
            made_by=by,
            code_version=settings.CODE_VERSION,
            filters=msgspec.to_builtins(filters),
            n_rows=counts.pop(None, 0),
            left_out=counts,
        )


def stream_records(manifest: Manifest, *, start: int = 0, chunk: int = row_reader.CHUNK) -> Iterator[TraceRecord]:
    """Yield the records from position `start` in order, with few queries per chunk and no transaction in between."""
    for rows in read_row_chunks(manifest, start=start, chunk=chunk):
        yield from (row.record for row in rows)


def read_row_chunks(
    manifest: Manifest, *, start: int = 0, stop: int | None = None, chunk: int = row_reader.CHUNK
) -> Iterator[list[ExportRow]]:
    """Yield chunks of records together with their facts (assignment, draw, problem, provenance)."""
    stop = manifest.n_rows if stop is None else min(stop, manifest.n_rows)
    return row_reader.read_chunks(manifest, start=start, stop=stop, size=chunk)


_WRITE_AND_COUNT = """WITH selected AS ({select}),
written AS (
  INSERT INTO labeling_manifestrow (manifest_id, position, trace_id, submission_id, consensus_revision, score_version,
    is_contested)
  SELECT %s, ROW_NUMBER() OVER (ORDER BY {order}) - 1, trace_key, submission_key, consensus_key, score_key,
    contested_key
  FROM selected WHERE reason IS NULL)
SELECT reason, COUNT(*) FROM selected GROUP BY reason"""


def _write_rows(manifest_id: int, rows: QuerySet[Any], *, by_trace: bool) -> dict[str | None, int]:
    """Write the rows without an exclusion reason, and return the number of rows by reason.

    One statement does both, so both see the same state.
    """
    columns = ("trace_key", "submission_key", "consensus_key", "score_key", "contested_key", "reason")
    try:
        select, parameters = rows.order_by().values(*columns).query.sql_with_params()
    except EmptyResultSet:  # Django knows from the filters that no row matches
        return {}
    order = "trace_key, submission_key" if by_trace else "submission_key, trace_key"
    with connection.cursor() as cursor:
        cursor.execute(_WRITE_AND_COUNT.format(select=select, order=order), [*parameters, manifest_id])
        return dict(cursor.fetchall())
