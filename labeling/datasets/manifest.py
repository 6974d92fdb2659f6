"""Freezes what a snapshot or a training run reads, and streams it. Alone changes Manifest and ManifestRow.

A manifest names immutable revisions, in order: streamed again it gives the same records, whatever was relabelled since.
"""

import datetime as dt
from collections.abc import Iterator
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
from labeling.datasets.selection import Exclusions as Barred
from labeling.datasets.selection import ManifestFilters as Filters
from labeling.datasets.selection import ScoreSource as Scored
from labeling.models import Manifest, Project
from labeling.traces import bulk_insert

NO_EXCLUSIONS = Barred(is_training=False)


def freeze_manifest(
    *,
    project: Project,
    filters: Filters,
    purpose: str,
    now: dt.datetime,
    by: User | None,
    excluded: Barred = NO_EXCLUSIONS,
    scored: Scored | None = None,
    by_trace: bool = False,
) -> Manifest:
    """The ordered list of what the filters name at this moment, and what the rules left out of it. In the order of
    submission, or with those of a trace beside each other."""
    rows = selection.annotate_exclusion_reason(selection.select_rows(project, filters, scored), filters, excluded)
    with transaction.atomic():
        # Rows first: a manifest is never changed, so it is born knowing how many it has.
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
    """The records from position `start` on, in order. Few queries a chunk; no transaction stays open between them."""
    for found in read_row_chunks(manifest, start=start, chunk=chunk):
        yield from (each.record for each in found)


def read_row_chunks(
    manifest: Manifest, *, start: int = 0, stop: int | None = None, chunk: int = row_reader.CHUNK
) -> Iterator[list[ExportRow]]:
    """The same, with what stands around each record, a chunk at a time."""
    stop = manifest.n_rows if stop is None else min(stop, manifest.n_rows)
    return row_reader.read_chunks(manifest, start=start, stop=stop, size=chunk)


_WRITE_AND_COUNT = """WITH found AS ({select}),
written AS (
  INSERT INTO labeling_manifestrow (manifest_id, position, trace_id, submission_id, consensus_revision, score_version,
    is_contested)
  SELECT %s, ROW_NUMBER() OVER (ORDER BY {order}) - 1, trace_key, submission_key, consensus_key, score_key,
    contested_key
  FROM found WHERE reason IS NULL)
SELECT reason, COUNT(*) FROM found GROUP BY reason"""


def _write_rows(manifest_id: int, rows: QuerySet[Any], *, by_trace: bool) -> dict[str | None, int]:
    """Write the rows without a reason to leave them out, and return how many rows there are by reason.

    One statement does both, so that both see the same moment.
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
