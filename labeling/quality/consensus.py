"""Keeps the revisions of what a project stands behind. Alone adds to consensus, and reads it for others.

Exports and training read `current`: the newest revision of traces that are settled or decided, and no others.
"""

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from django.db.models import F, QuerySet

from accounts.models import User
from labeling.models import Consensus, Settlement
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.quality.posteriors import PROBABILITY_DIGITS, Posterior
from labeling.quality.step_labels import StepLabel


class AssistedConsensus(NamedTuple):
    """What is made of a trace with machines and whoever saw scores among its readers: the places that all name."""

    votes: Sequence[int | None]
    posterior: Posterior | None


NO_ASSISTED_CONSENSUS = AssistedConsensus((), None)
RESOLVED_STATES = (SettlementState.SETTLED, SettlementState.DECIDED)


def current_revisions(*, project_id: int) -> QuerySet[Consensus]:
    """What the project stands behind now, one row a trace; a manifest keeps (trace, revision) of it. A withdrawn trace
    counts nowhere."""
    return Consensus.objects.filter(
        project_id=project_id,
        trace__withdrawn_at=None,
        trace__settlement__state__in=RESOLVED_STATES,
        revision=F("trace__settlement__consensus_revision"),
    )


def latest_resolved(
    *, project_id: int, state: SettlementState, only: Collection[int] | None = None
) -> QuerySet[Settlement, tuple[int, int]]:
    """Traces of one of the states that stand, with how many named a place, what was settled last coming first."""
    rows = Settlement.objects.filter(project_id=project_id, state=state)
    rows = rows if only is None else rows.filter(trace__in=only)
    return rows.order_by("-changed_at", "-trace_id").values_list("trace_id", "n_votes")


def all_revisions(*, trace_id: int) -> QuerySet[Consensus]:
    """Every revision of a trace, the newest first."""
    return Consensus.objects.filter(trace_id=trace_id).select_related("made_by").order_by("-revision")


def save_revision(
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
    posterior: Posterior | None = None,
    assisted: AssistedConsensus = NO_ASSISTED_CONSENSUS,
) -> int:
    """The number of the revision that says this: the newest one, where it says the same, otherwise a new one. Inside a
    transaction that holds the trace. A revision that knows its probability is not made anew for a later fit."""
    told: dict[str, Any] = {
        "first_error": first_error,
        "source": source,
        "confidence": confidence,
        "n_votes": n_votes,
        "labels": [list(label) for label in labels],
        "note": note,
        "assisted_votes": list(assisted.votes),
    }
    newest = Consensus.objects.filter(trace_id=trace_id).order_by("-revision").first()
    if newest is not None and source == ConsensusSource.RATERS and _is_same_revision(newest, told, posterior, assisted):
        return newest.revision
    revision = newest.revision + 1 if newest else 1
    known = _posterior_fields(posterior, first_error) | _assisted_fields(assisted)
    Consensus.objects.create(
        trace_id=trace_id, project_id=project_id, revision=revision, made_at=now, made_by=by, **told, **known
    )
    return revision


def _posterior_fields(posterior: Posterior | None, first_error: int | None) -> dict[str, Any]:
    if posterior is None:
        return {}
    probability = round(posterior.of(first_error), PROBABILITY_DIGITS)
    return {"posterior": posterior.listed(), "probability": probability, "fit_id": posterior.fit_id}


def _assisted_fields(assisted: AssistedConsensus) -> dict[str, Any]:
    if assisted.posterior is None:
        return {}
    return {"assisted_posterior": assisted.posterior.listed(), "assisted_fit_id": assisted.posterior.fit_id}


def _is_same_revision(
    row: Consensus, told: dict[str, Any], posterior: Posterior | None, assisted: AssistedConsensus
) -> bool:
    """Labels are as sure as the posterior: of the same readings they are other numbers by another fit."""
    if posterior is not None and row.fit_id is None:
        return False
    if assisted.posterior is not None and row.assisted_fit_id is None:
        return False
    said = {**told, "labels": [label[:3] for label in told["labels"]]} if posterior is not None else told
    labels = [label[:3] for label in row.labels] if posterior is not None else row.labels
    return all((labels if name == "labels" else getattr(row, name)) == value for name, value in said.items())
