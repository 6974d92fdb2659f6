"""Freezes what a snapshot or a training run reads, and streams it. Alone changes Manifest and ManifestRow.

A manifest names immutable revisions, in order: streamed again it gives the same records, whatever was relabelled since.
"""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import msgspec
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from msgspec import Struct

from accounts.models import User
from labeling import reading
from labeling.importing import bulk
from labeling.importing.records import TraceRecord
from labeling.models import Manifest, ManifestRow, Project, Submission
from labeling.readings import Reading


class Filters(Struct, omit_defaults=True):
    """Which submissions are wanted; a list that is absent means all. The latest revision of each counts."""

    finish_reasons: list[str | None] | None = None
    generations: list[int | None] | None = None
    purposes: list[str] | None = None
    populations: list[str] | None = None
    origins: list[str] | None = None
    labelers: list[str | None] | None = None
    submitted_from: dt.datetime | None = None
    submitted_until: dt.datetime | None = None  # this moment not included


def freeze(*, project: Project, filters: Filters, purpose: str, now: dt.datetime, by: User | None) -> Manifest:
    """The ordered list of what the filters name at this moment, written by one statement."""
    with transaction.atomic():
        # Rows first: a manifest is never changed, so it is born knowing how many it has.
        table = Manifest._meta.db_table
        pk = next(bulk.ids([table])[table])
        return Manifest.objects.create(
            pk=pk,
            project=project,
            purpose=purpose,
            made_at=now,
            made_by=by,
            code_version=settings.CODE_VERSION,
            filters=msgspec.to_builtins(filters),
            n_rows=_write_rows(pk, _chosen(project, filters)),
        )


def stream(manifest: Manifest, *, start: int = 0, chunk: int = reading.CHUNK) -> Iterator[TraceRecord]:
    """The records from position `start` on, in order. Few queries a chunk; no transaction stays open between them."""
    for found in readings(manifest, start=start, chunk=chunk):
        yield from (each.record for each in found)


def readings(
    manifest: Manifest, *, start: int = 0, stop: int | None = None, chunk: int = reading.CHUNK
) -> Iterator[list[Reading]]:
    """The same, with what stands around each record, a chunk at a time."""
    stop = manifest.n_rows if stop is None else min(stop, manifest.n_rows)
    return reading.chunks(manifest, start=start, stop=stop, size=chunk)


def _chosen(project: Project, filters: Filters) -> QuerySet[Submission]:
    latest = Submission.objects.filter(project=project, revision=F("assignment__submitted_revision"))
    if filters.submitted_from:
        latest = latest.filter(submitted_at__gte=filters.submitted_from)
    if filters.submitted_until:
        latest = latest.filter(submitted_at__lt=filters.submitted_until)
    return latest.filter(
        _is_among("finish_reason", filters.finish_reasons),
        _is_among("generation", filters.generations),
        _is_among("assignment__purpose", filters.purposes),
        _is_among("assignment__population", filters.populations),
        _is_among("assignment__origin", filters.origins),
        _is_among("assignment__rater__labeler", filters.labelers),
    )


def _is_among(field: str, wanted: list[Any] | None) -> Q:
    """Null is a value like any other here: phase 1 has no generation."""
    if wanted is None:
        return Q()
    given = [value for value in wanted if value is not None]
    return Q(**{f"{field}__in": given}) | (Q(**{field: None}) if None in wanted else Q(pk__in=[]))


def _write_rows(manifest_id: int, chosen: QuerySet[Submission]) -> int:
    """One statement reads and writes: it sees one moment, on both engines."""
    number = Window(RowNumber(), order_by=F("pk").asc())
    rows = chosen.annotate(chosen=F("pk"), number=number).values_list("chosen", "number")
    select, parameters = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {ManifestRow._meta.db_table} (manifest_id, submission_id, position, score_version)"  # noqa: S608  text of our own
            f" SELECT %s, found.chosen, found.number - 1, '' FROM ({select}) AS found",
            [manifest_id, *parameters],
        )
        return int(cursor.rowcount)
