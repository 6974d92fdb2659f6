"""Consensus revisions of traces. The only module that adds and reads them.

Exports and training use `current_revisions`: the newest revision of each settled or decided trace.
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
    """The result with machines and raters who saw scores included: their votes, and the posterior of all."""

    votes: Sequence[int | None]
    posterior: Posterior | None


NO_ASSISTED_CONSENSUS = AssistedConsensus((), None)
RESOLVED_STATES = (SettlementState.SETTLED, SettlementState.DECIDED)


def current_revisions(*, project_id: int) -> QuerySet[Consensus]:
    """Return the current revision of each resolved trace that is not withdrawn."""
    return Consensus.objects.filter(
        project_id=project_id,
        trace__withdrawn_at=None,
        trace__settlement__state__in=RESOLVED_STATES,
        revision=F("trace__settlement__consensus_revision"),
    )


def latest_resolved(
    *, project_id: int, state: SettlementState, only: Collection[int] | None = None
) -> QuerySet[Settlement, tuple[int, int]]:
    """Return (trace, number of votes) of traces in a resolved state, the newest first."""
    rows = Settlement.objects.filter(project_id=project_id, state=state)
    rows = rows if only is None else rows.filter(trace__in=only)
    return rows.order_by("-changed_at", "-trace_id").values_list("trace_id", "n_votes")


def all_revisions(*, trace_id: int) -> QuerySet[Consensus]:
    """Return all revisions of a trace, the newest first."""
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
    """Return the number of the revision with this content: the newest one if it is equal, otherwise a new one.

    Runs in a transaction that locks the trace. A later fit alone makes no new revision.
    """
    content: dict[str, Any] = {
        "first_error": first_error,
        "source": source,
        "confidence": confidence,
        "n_votes": n_votes,
        "labels": [list(label) for label in labels],
        "note": note,
        "assisted_votes": list(assisted.votes),
    }
    newest = Consensus.objects.filter(trace_id=trace_id).order_by("-revision").first()
    if (
        newest is not None
        and source == ConsensusSource.RATERS
        and _is_same_revision(newest, content, posterior, assisted)
    ):
        return newest.revision
    revision = newest.revision + 1 if newest else 1
    probabilities = _posterior_fields(posterior, first_error) | _assisted_fields(assisted)
    Consensus.objects.create(
        trace_id=trace_id, project_id=project_id, revision=revision, made_at=now, made_by=by, **content, **probabilities
    )
    return revision


def _posterior_fields(posterior: Posterior | None, first_error: int | None) -> dict[str, Any]:
    if posterior is None:
        return {}
    probability = round(posterior.probability_at(first_error), PROBABILITY_DIGITS)
    return {"posterior": posterior.as_list(), "probability": probability, "fit_id": posterior.fit_id}


def _assisted_fields(assisted: AssistedConsensus) -> dict[str, Any]:
    if assisted.posterior is None:
        return {}
    return {"assisted_posterior": assisted.posterior.as_list(), "assisted_fit_id": assisted.posterior.fit_id}


def _is_same_revision(
    row: Consensus, content: dict[str, Any], posterior: Posterior | None, assisted: AssistedConsensus
) -> bool:
    if posterior is not None and row.fit_id is None:
        return False
    if assisted.posterior is not None and row.assisted_fit_id is None:
        return False
    stored = {name: getattr(row, name) for name in content}
    if posterior is None:
        return stored == content
    # With a posterior, confidences are probabilities, which differ between fits of the same submissions.
    return _without_confidence(stored) == _without_confidence(content)


def _without_confidence(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "labels": [label[:3] for label in content["labels"]]}
