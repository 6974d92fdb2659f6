"""Keeps the revisions of what a project stands behind. Alone adds to consensus, and reads it for others.

Exports and training read `current`: the newest revision of traces that are settled or decided, and no others.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.db.models import F, QuerySet

from accounts.models import User
from labeling.models import Consensus
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.quality.step_labels import StepLabel

STANDING = (SettlementState.SETTLED, SettlementState.DECIDED)


def current(*, project_id: int) -> QuerySet[Consensus]:
    """What the project stands behind now, one row a trace; a manifest keeps (trace, revision) of it."""
    return Consensus.objects.filter(
        project_id=project_id,
        trace__settlement__state__in=STANDING,
        revision=F("trace__settlement__consensus_revision"),
    )


def history(*, trace_id: int) -> QuerySet[Consensus]:
    """Every revision of a trace, the newest first."""
    return Consensus.objects.filter(trace_id=trace_id).select_related("made_by").order_by("-revision")


def keep(
    *,
    trace_id: int,
    project_id: int,
    first_error: int | None,
    source: ConsensusSource,
    confidence: float | None,
    n_votes: int,
    labels: Sequence[StepLabel],
    now: dt.datetime,
    by: User | None,
    note: str = "",
) -> int:
    """The number of the revision that says this: the newest one, where it says the same, otherwise a new one. Inside a
    transaction that holds the trace."""
    told: dict[str, Any] = {
        "first_error": first_error,
        "source": source,
        "confidence": confidence,
        "n_votes": n_votes,
        "labels": [list(label) for label in labels],
        "note": note,
    }
    newest = Consensus.objects.filter(trace_id=trace_id).order_by("-revision").first()
    if newest is not None and source == ConsensusSource.RATERS and _says(newest, told):
        return newest.revision
    revision = newest.revision + 1 if newest else 1
    Consensus.objects.create(
        trace_id=trace_id, project_id=project_id, revision=revision, made_at=now, made_by=by, **told
    )
    return revision


def _says(row: Consensus, told: dict[str, Any]) -> bool:
    return all(getattr(row, name) == value for name, value in told.items())
