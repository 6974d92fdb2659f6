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
from labeling.quality.posteriors import DIGITS, Posterior
from labeling.quality.step_labels import StepLabel


class Assisted(NamedTuple):
    """What is made of a trace with machines and whoever saw scores among its readers: the places that all name."""

    votes: Sequence[int | None]
    posterior: Posterior | None


NOBODY = Assisted((), None)
STANDING = (SettlementState.SETTLED, SettlementState.DECIDED)


def current(*, project_id: int) -> QuerySet[Consensus]:
    """What the project stands behind now, one row a trace; a manifest keeps (trace, revision) of it. A withdrawn trace
    counts nowhere."""
    return Consensus.objects.filter(
        project_id=project_id,
        trace__withdrawn_at=None,
        trace__settlement__state__in=STANDING,
        revision=F("trace__settlement__consensus_revision"),
    )


def settled_last(
    *, project_id: int, state: SettlementState, only: Collection[int] | None = None
) -> QuerySet[Settlement, tuple[int, int]]:
    """Traces of one of the states that stand, with how many named a place, what was settled last coming first."""
    rows = Settlement.objects.filter(project_id=project_id, state=state)
    rows = rows if only is None else rows.filter(trace__in=only)
    return rows.order_by("-changed_at", "-trace_id").values_list("trace_id", "n_votes")


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
    posterior: Posterior | None = None,
    assisted: Assisted = NOBODY,
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
    if newest is not None and source == ConsensusSource.RATERS and _says(newest, told, posterior, assisted):
        return newest.revision
    revision = newest.revision + 1 if newest else 1
    known = _known(posterior, first_error) | _known_assisted(assisted)
    Consensus.objects.create(
        trace_id=trace_id, project_id=project_id, revision=revision, made_at=now, made_by=by, **told, **known
    )
    return revision


def _known(posterior: Posterior | None, first_error: int | None) -> dict[str, Any]:
    if posterior is None:
        return {}
    probability = round(posterior.of(first_error), DIGITS)
    return {"posterior": posterior.listed(), "probability": probability, "fit_id": posterior.fit_id}


def _known_assisted(assisted: Assisted) -> dict[str, Any]:
    if assisted.posterior is None:
        return {}
    return {"assisted_posterior": assisted.posterior.listed(), "assisted_fit_id": assisted.posterior.fit_id}


def _says(row: Consensus, told: dict[str, Any], posterior: Posterior | None, assisted: Assisted) -> bool:
    """Labels are as sure as the posterior: of the same readings they are other numbers by another fit."""
    if posterior is not None and row.fit_id is None:
        return False
    if assisted.posterior is not None and row.assisted_fit_id is None:
        return False
    said = {**told, "labels": [label[:3] for label in told["labels"]]} if posterior is not None else told
    labels = [label[:3] for label in row.labels] if posterior is not None else row.labels
    return all((labels if name == "labels" else getattr(row, name)) == value for name, value in said.items())
