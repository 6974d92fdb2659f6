"""Where traces came from: one row for each file, or for each program that wrote them. Alone makes Source rows."""

import datetime as dt

from labeling.models import Project, Source


def ensure(
    *,
    project: Project,
    name: str,
    format: str,
    now: dt.datetime,
    sha256: str = "",
    licence: str = "",
    statement: str = "",
) -> Source:
    """The row of this file in this project, made when it comes for the first time."""
    source, _ = Source.objects.get_or_create(
        project=project,
        name=name,
        sha256=sha256,
        defaults={"format": format, "licence": licence, "statement": statement, "added_at": now},
    )
    return source
