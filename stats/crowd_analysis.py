"""The step statistics for the ratings of anybody's crowd, as one table of plain numbers that goes into JSON."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stats import dawid_skene, first_error_dawid_skene, label_votes, rating_patterns, ratings_file, step_agreement
from stats.arrays import Bools, Floats, Ints
from stats.estimates import Estimate, Interval, Reason
from stats.first_error_dawid_skene import EVENTS
from stats.first_error_reports import ReportArrays
from stats.label_votes import LabelVotes
from stats.rating_patterns import RatingPatterns
from stats.ratings_file import CrowdRatings, InvalidRatingsFile, RatingScale

_NEEDS_NUMBERS = {"alpha_interval", "gwet_ac2_quadratic"}
_NEEDS_ORDER = {"alpha_ordinal"}


def report_agreement(
    ratings: CrowdRatings, scale: RatingScale, labels: Ints, *, level: float = 0.95, seed: int = 0
) -> dict[str, Any]:
    """Values by name at the top; beneath them intervals, the reasons of what is missing, and counts."""
    counted = _count_task_patterns(ratings, scale, labels)
    found = step_agreement.estimate_step_statistics(counted, level=level, seed=seed)
    missing = {name: reason for name in found if (reason := _reason_not_applicable(name, scale))}
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
        "label_shares": dict(zip(scale.names, step_agreement.label_shares(counted).values(), strict=True)),
    }


def _count_task_patterns(ratings: CrowdRatings, scale: RatingScale, labels: Ints) -> RatingPatterns:
    problems = None
    if "cluster" in ratings.extra:
        problems = np.unique(np.array(ratings_file.read_task_values(ratings, "cluster")), return_inverse=True)[1]
    counted = rating_patterns.count_patterns(
        units=ratings.tasks, labels=labels, problem_of_unit=problems, values=scale.values
    )
    k = len(scale.values)
    ratings_file.check_table_size(
        labels=k, others=len(counted.copies), called="clusters", numbers_per_item=k * k + 2 * k + 2
    )
    return rating_patterns.merge_equal_patterns(counted)


def _reason_not_applicable(name: str, scale: RatingScale) -> Reason | None:
    if name in _NEEDS_NUMBERS and not scale.is_numeric:
        return Reason.NOT_NUMBERS
    return Reason.NO_ORDER if name in _NEEDS_ORDER and not scale.is_ordered else None


def _counts(ratings: CrowdRatings, counted: RatingPatterns, estimate: Estimate) -> dict[str, int]:
    return {
        "ratings": len(ratings.lines),
        "tasks": len(ratings.task_names),
        "tasks_rated_twice_or_more": counted.n_pairable,
        "workers": len(ratings.worker_names),
        "clusters": int(counted.copies.sum()),
        "clusters_with_something_to_compare": estimate.counts.problems,
    }


def _clustered_by(ratings: CrowdRatings) -> str:
    return "cluster" if "cluster" in ratings.extra else "task"


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


# First-error reports from a CSV of ratings: a task is a trace, its label the 0-based place of the first error.


FIRST_ERROR_COLUMNS = ("steps", "domain", "seen")
FIRST_ERROR_BLANK_COLUMNS = ("label", "domain", "seen")
MAX_STEPS = 10_000
_NONE = -1


def parse_first_error_reports(ratings: CrowdRatings) -> ReportArrays:
    """Raises BadFile for labels that are no place in their trace."""
    is_censored = np.array([not label for label in ratings.labels], dtype=np.bool_)
    said = _numbers(ratings, is_censored)
    lengths = _lengths(ratings, said)
    _check_size(int((lengths[ratings.tasks] + 1).sum()))
    _raise_complaints(_find_outside(ratings, said, is_censored, lengths))
    domains = ratings_file.read_task_values(ratings, "domain") if "domain" in ratings.extra else [""] * len(lengths)
    return ReportArrays(
        traces=ratings.tasks,
        raters=ratings.workers,
        ends=np.where(said == _NONE, lengths[ratings.tasks], said),
        is_censored=is_censored,
        lengths=lengths,
        problems=np.arange(len(lengths)),
        domains=np.unique(np.array(domains), return_inverse=True)[1].astype(np.int64),
    )


def _numbers(ratings: CrowdRatings, is_censored: Bools) -> Ints:
    """The label of every row, or the steps seen where there is no label."""
    seen = ratings.extra.get("seen", [""] * len(ratings.lines))
    complaints, numbers = [], []
    for line, label, steps, censored in zip(ratings.lines, ratings.labels, seen, is_censored, strict=True):
        number = _parse_whole(steps if censored else label, lowest=0 if censored else _NONE)
        if number is None and censored:
            complaints.append(f"line {line}: no label, and no number of steps in seen: what did the worker report?")
        elif number is None:
            complaints.append(f"line {line}: {label!r} is no place of a first error: 0, 1, 2 … or -1 for none")
        numbers.append(number or 0)
    _raise_complaints(complaints)
    return np.array(numbers, dtype=np.int64)


def _lengths(ratings: CrowdRatings, said: Ints) -> Ints:
    if "steps" not in ratings.extra:
        return np.full(len(ratings.task_names), int(said.max(initial=0)) + 1, dtype=np.int64)
    told = [_parse_whole(text, lowest=1) for text in ratings_file.read_task_values(ratings, "steps")]
    _raise_complaints(
        f"line {line}: steps is {text!r}, not a whole number from 1 to {MAX_STEPS}"
        for line, text, task in zip(ratings.lines, ratings.extra["steps"], ratings.tasks.tolist(), strict=True)
        if told[task] is None
    )
    return np.array(told, dtype=np.int64)


def _check_size(places: int) -> None:
    """Every report says something of every place of its trace."""
    most = ratings_file.MAX_NUMBERS // len(EVENTS)
    if places > most:
        raise InvalidRatingsFile(
            [f"traces of {places:,} steps in all reports together: at most {most:,}, or fewer at a time"]
        )


def _find_outside(ratings: CrowdRatings, said: Ints, is_censored: Bools, lengths: Ints) -> Iterator[str]:
    most = np.where(is_censored, lengths[ratings.tasks], lengths[ratings.tasks] - 1)
    for row in np.flatnonzero(said > most):
        yield (
            f"line {ratings.lines[row]}: {said[row]} lies outside a trace of {lengths[ratings.tasks[row]]} steps "
            "(the first step is 0)"
        )


def _parse_whole(text: str, *, lowest: int) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if lowest <= number <= MAX_STEPS and "_" not in text else None  # 1_0 is ten in Python alone


def _raise_complaints(complaints: Iterable[str]) -> None:
    told = list(complaints)
    if told:
        raise InvalidRatingsFile(told)


# One label per task from the ratings of anybody's crowd, with its probability: majority, Dawid–Skene, first error.


CONSENSUS_METHODS = ("majority", "dawid_skene", "first_error")


@dataclass(frozen=True)
class CrowdLabel:
    """The label of a task, how probable it is (for a majority: its share of the votes), and how many voted."""

    task: str
    label: str
    probability: float
    votes: int


def infer_labels(ratings: CrowdRatings, scale: RatingScale, labels: Ints, *, method: str) -> Iterator[CrowdLabel]:
    votes = LabelVotes(ratings.tasks, ratings.workers, labels, len(scale.names))
    if method == "dawid_skene":
        ratings_file.check_table_size(
            labels=votes.k, others=votes.n_workers, called="workers", numbers_per_item=votes.k**2
        )
        fit = dawid_skene.fit_votes(votes)
        places, sure = fit.labels, fit.probabilities
    else:
        counted = label_votes.take_majority(votes)
        places, sure = counted.labels, counted.shares
    return _crowd_labels(ratings, [scale.names[place] for place in places.tolist()], sure)


def infer_first_errors(ratings: CrowdRatings) -> Iterator[CrowdLabel]:
    """Tasks are traces, labels 0-based places of the first error, -1 for none; see `crowd_reports` for the columns."""
    told = parse_first_error_reports(ratings)
    fit = first_error_dawid_skene.fit_reports(told)
    steps, sure = first_error_dawid_skene.most_likely_places(fit.posterior, fit.there)
    places = zip(steps.tolist(), told.lengths.tolist(), strict=True)
    return _crowd_labels(ratings, ["-1" if step == length else str(step) for step, length in places], sure)


def _crowd_labels(ratings: CrowdRatings, labels: Sequence[str], sure: Floats) -> Iterator[CrowdLabel]:
    votes = [0] * len(ratings.task_names)
    for task in ratings.tasks.tolist():
        votes[task] += 1
    for row in zip(ratings.task_names, labels, sure.tolist(), votes, strict=True):
        yield CrowdLabel(*row)
