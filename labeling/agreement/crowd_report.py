"""The step statistics for the ratings of anybody's crowd, as one table of plain numbers that goes into JSON."""

from typing import Any

import numpy as np

from labeling.agreement import headline, patterns, ratings_file
from labeling.agreement.arrays import Ints
from labeling.agreement.patterns import Patterns
from labeling.agreement.ratings_file import Ratings
from labeling.agreement.result import Estimate, Interval, Reason
from labeling.agreement.scale import Scale

_NEEDS_NUMBERS = {"alpha_interval", "gwet_ac2_quadratic"}
_NEEDS_ORDER = {"alpha_ordinal"}


def of_ratings(ratings: Ratings, scale: Scale, labels: Ints, *, level: float = 0.95, seed: int = 0) -> dict[str, Any]:
    """Values by name at the top; beneath them intervals, the reasons of what is missing, and counts."""
    counted = _patterns(ratings, scale, labels)
    found = headline.of_patterns(counted, level=level, seed=seed)
    missing = {name: reason for name in found if (reason := _unfit(name, scale))}
    values = {name: None if name in missing else estimate.value for name, estimate in found.items()}
    reasons = {name: estimate.reason for name, estimate in found.items() if estimate.reason} | missing
    shown = {name: estimate for name, estimate in found.items() if name not in missing}
    return values | {
        "reasons": {name: str(reason) for name, reason in reasons.items()},
        "intervals": {name: _pair(estimate.interval) for name, estimate in shown.items()},
        "interval_reasons": {name: str(e.interval_reason) for name, e in shown.items() if e.interval_reason},
        "interval_method": f"{level:.0%} jackknife-t, leaving out one {_clustered_by(ratings)} at a time",
        "bootstrap_intervals": {name: _pair(estimate.bootstrap) for name, estimate in shown.items()},
        "bootstrap_reasons": {name: str(e.bootstrap_reason) for name, e in shown.items() if e.bootstrap_reason},
        "counts": _counts(ratings, counted, next(iter(found.values()))),
        "clustered_by": _clustered_by(ratings),
        "values": list(scale.names),
        "label_shares": dict(zip(scale.names, headline.label_shares(counted).values(), strict=True)),
    }


def _patterns(ratings: Ratings, scale: Scale, labels: Ints) -> Patterns:
    problems = None
    if "cluster" in ratings.extra:
        problems = np.unique(np.array(ratings_file.one_per_task(ratings, "cluster")), return_inverse=True)[1]
    counted = patterns.of_ratings(units=ratings.tasks, labels=labels, problem_of_unit=problems, values=scale.values)
    k = len(scale.values)
    ratings_file.check_size(labels=k, others=len(counted.copies), called="clusters", a_piece=k * k + 2 * k + 2)
    return patterns.compress(counted)


def _unfit(name: str, scale: Scale) -> Reason | None:
    if name in _NEEDS_NUMBERS and not scale.is_numeric:
        return Reason.NOT_NUMBERS
    return Reason.NO_ORDER if name in _NEEDS_ORDER and not scale.is_ordered else None


def _counts(ratings: Ratings, counted: Patterns, estimate: Estimate) -> dict[str, int]:
    return {
        "ratings": len(ratings.lines),
        "tasks": len(ratings.task_names),
        "tasks_rated_twice_or_more": counted.n_pairable,
        "workers": len(ratings.worker_names),
        "clusters": int(counted.copies.sum()),
        "clusters_with_something_to_compare": estimate.counts.problems,
    }


def _clustered_by(ratings: Ratings) -> str:
    return "cluster" if "cluster" in ratings.extra else "task"


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]
