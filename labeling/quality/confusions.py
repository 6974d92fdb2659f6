"""What single step ratings said of steps that are settled: the table, recall by class, over-credit and over-blame, each
with its interval by problem. Reads only."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from django.db.models import F

from labeling.agreement import confusion, estimation
from labeling.agreement.estimation import Statistic
from labeling.models import Judgment
from labeling.models.consensus import ConsensusSource
from labeling.quality import consensus, estimates

LATEST = 300  # settled traces that step ratings are held against
_PLACE = {-1: 0, 0: 1, 1: 2}
_STATISTICS: dict[str, Statistic] = {
    **{f"recall {value}": confusion.recall(place=place, k=3) for value, place in _PLACE.items()},
    "over_credit": confusion.over_credit(negative=0, k=3),
    "over_blame": confusion.over_blame(negative=0, k=3),
}


def of_project(project_id: int) -> dict[str, Any]:
    """Over the traces settled last, by several: one reading held against itself is always right."""
    several = consensus.current(project_id=project_id).exclude(source=ConsensusSource.RATERS, n_votes__lt=2)
    newest = several.select_related("trace").order_by("-made_at", "-pk")
    settled = list(newest[:LATEST])
    labels = {(row.trace_id, step, option): rating for row in settled for step, option, rating, *_ in row.labels}
    problem_of = {row.trace_id: row.trace.problem_id for row in settled}
    met = [
        (labels[trace, step, option], rating, problem_of[trace])
        for trace, step, option, rating in _rated(list(problem_of))
        if (trace, step, option) in labels
    ]
    _, problems = np.unique([problem for _, _, problem in met], return_inverse=True)
    tables = confusion.tables(
        reference=np.array([_PLACE[label] for label, _, _ in met], dtype=np.int64),
        given=np.array([_PLACE[rating] for _, rating, _ in met], dtype=np.int64),
        problems=problems.astype(np.int64),
        k=3,
        n_problems=int(problems.max(initial=-1)) + 1,
    )
    found = estimation.estimates(statistics=_STATISTICS, sample=confusion.sample(tables), with_bootstrap=False)
    counts = tables.sum(axis=0).astype(int)
    cases = {"over_credit": counts[0].sum(), "over_blame": counts[1:].sum()}
    cases |= {f"recall {value}": counts[place].sum() for value, place in _PLACE.items()}
    # Each share is of its own rows: n says how many steps those are, not how many there are in all.
    told = {name: estimates.row(found[name]) | {"n": int(n), "n_paired": int(n)} for name, n in cases.items()}
    return {
        "counts": counts.tolist(),
        "recall": {str(value): told[f"recall {value}"] for value in _PLACE},
        "over_credit": told["over_credit"],
        "over_blame": told["over_blame"],
        "n_traces": len(settled),
    }


def _rated(trace_ids: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Trace, step, option and rating of every reading that has a vote, by its latest revision."""
    rows = Judgment.objects.filter(
        turn__assignment__report__trace_id__in=trace_ids,
        turn__revision=F("turn__assignment__report__revision"),
    ).values_list("turn__assignment__trace_id", "turn__step__position", "option__position", "rating")
    for trace, step, option, rating in rows:
        if rating is not None:
            yield trace, step, option, rating
