"""Sources of traces: one row for each imported file, or for each program that adds traces."""

import datetime as dt
from typing import Any

from labeling.models import Project, Source
from labeling.models.problem import ImportedLabelKind, SourcePurpose


def ensure_source(
    *,
    project: Project,
    name: str,
    format: str,
    now: dt.datetime,
    sha256: str = "",
    licence: str = "",
    statement: str = "",
    purpose: str = SourcePurpose.RATE,
    labels_are: str = ImportedLabelKind.JUDGMENTS,
    labels_by: str = "",
) -> Source:
    """Return the source of a file in a project, created on its first import.

    Importing it again updates the source and clears `undone_at`. An empty licence or statement keeps the earlier one.
    """
    fields = {"format": format, "purpose": purpose, "labels_are": labels_are, "labels_by": labels_by[:160]}
    stated = {"licence": licence[:200], "statement": statement}
    source, is_new = Source.objects.get_or_create(
        project=project, name=name[-500:], sha256=sha256, defaults={**fields, **stated, "added_at": now}
    )
    fields |= {key: value for key, value in stated.items() if value}
    if not is_new and (source.undone_at or any(getattr(source, key) != value for key, value in fields.items())):
        Source.objects.filter(pk=source.pk).update(**fields, undone_at=None)
        source.refresh_from_db()
    return source


def save_report(*, source: Source, report: dict[str, Any], now: dt.datetime) -> None:
    Source.objects.filter(pk=source.pk).update(report=report, reported_at=now, undone_at=None)
