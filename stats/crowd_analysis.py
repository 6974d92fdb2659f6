"""Analyze a CSV file of ratings: an agreement report, or one consensus label per task.

For first errors, a task is a trace, its label is the 0-based place of the first error, and -1 means no error.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stats import agreement, first_error_dawid_skene, first_error_reports, label_votes, rating_patterns, ratings_file
from stats.arrays import Bools, Floats, Ints, number_values
from stats.estimates import Estimate, Interval, Reason
from stats.first_error_dawid_skene import EVENTS
from stats.first_error_reports import ReportArrays
from stats.label_votes import LabelVotes
from stats.rating_patterns import RatingPatterns
from stats.ratings_file import CrowdRatings, InvalidRatingsFile, RatingScale, TableTooLarge

CONSENSUS_METHODS = ("majority", "dawid_skene", "first_error")
FIRST_ERROR_COLUMNS = ("steps", "domain", "seen")
FIRST_ERROR_BLANK_COLUMNS = ("label", "domain", "seen")
MAX_STEPS = 10_000
_NONE = -1
_NEEDS_NUMBERS = {"alpha_interval", "gwet_ac2_quadratic"}
_NEEDS_ORDER = {"alpha_ordinal"}


# Agreement


def report_agreement(ratings: CrowdRatings, scale: RatingScale, labels: Ints, *, level: float = 0.95) -> dict[str, Any]:
    """Return the report for JSON: values by name, then intervals, reasons for missing numbers, and counts."""
    patterns = _count_task_patterns(ratings, scale, labels)
    estimates = agreement.estimate_step_statistics(patterns, level=level)
    not_applicable = {name: reason for name in estimates if (reason := _reason_not_applicable(name, scale))}
    values = {name: None if name in not_applicable else estimate.value for name, estimate in estimates.items()}
    reasons = {name: estimate.reason for name, estimate in estimates.items() if estimate.reason} | not_applicable
    shown = {name: estimate for name, estimate in estimates.items() if name not in not_applicable}
    return values | {
        "reasons": {name: str(reason) for name, reason in reasons.items()},
        "intervals": {name: _pair(estimate.interval) for name, estimate in shown.items()},
        "interval_reasons": {name: str(e.interval_reason) for name, e in shown.items() if e.interval_reason},
        "interval_method": f"{level:.0%} jackknife-t, leaving out one {_clustered_by(ratings)} at a time",
        "bootstrap_intervals": {name: _pair(estimate.bootstrap) for name, estimate in shown.items()},
        "bootstrap_reasons": {name: str(e.bootstrap_reason) for name, e in shown.items() if e.bootstrap_reason},
        "counts": _counts(ratings, patterns, next(iter(estimates.values()))),
        "clustered_by": _clustered_by(ratings),
        "values": list(scale.names),
        "label_shares": dict(zip(scale.names, agreement.label_shares(patterns).values(), strict=True)),
    }


def _count_task_patterns(ratings: CrowdRatings, scale: RatingScale, labels: Ints) -> RatingPatterns:
    problems = None
    if "cluster" in ratings.extra:
        problems = number_values(ratings_file.read_task_values(ratings, "cluster"))
    patterns = rating_patterns.count_patterns(
        units=ratings.tasks, labels=labels, problem_of_unit=problems, values=scale.values
    )
    k = len(scale.values)
    ratings_file.check_table_size(
        labels=k, others=len(patterns.copies), called="clusters", numbers_per_item=k * k + 2 * k + 2
    )
    return rating_patterns.merge_equal_patterns(patterns)


def _reason_not_applicable(name: str, scale: RatingScale) -> Reason | None:
    if name in _NEEDS_NUMBERS and not scale.is_numeric:
        return Reason.NOT_NUMBERS
    return Reason.NO_ORDER if name in _NEEDS_ORDER and not scale.is_ordered else None


def _counts(ratings: CrowdRatings, patterns: RatingPatterns, estimate: Estimate) -> dict[str, int]:
    return {
        "ratings": len(ratings.lines),
        "tasks": len(ratings.task_names),
        "tasks_rated_twice_or_more": patterns.n_pairable,
        "workers": len(ratings.worker_names),
        "clusters": int(patterns.copies.sum()),
        "clusters_with_something_to_compare": estimate.counts.problems,
    }


def _clustered_by(ratings: CrowdRatings) -> str:
    return "cluster" if "cluster" in ratings.extra else "task"


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


# Consensus


@dataclass(frozen=True)
class CrowdLabel:
    """The label of a task, its probability (for a majority: its share of the votes), and the number of votes."""

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
        fit = label_votes.fit_votes(votes)
        indices, probabilities = fit.labels, fit.probabilities
    else:
        indices, probabilities = label_votes.take_majority(votes)
    return _crowd_labels(ratings, [scale.names[index] for index in indices.tolist()], probabilities)


def infer_first_errors(ratings: CrowdRatings) -> Iterator[CrowdLabel]:
    reports = parse_first_error_reports(ratings)
    fit = first_error_dawid_skene.fit_reports(reports)
    steps, probabilities = first_error_reports.most_likely_places(fit.posterior, fit.places)
    places = zip(steps.tolist(), reports.lengths.tolist(), strict=True)
    labels = [str(_NONE) if step == length else str(step) for step, length in places]
    return _crowd_labels(ratings, labels, probabilities)


def _crowd_labels(ratings: CrowdRatings, labels: Sequence[str], probabilities: Floats) -> Iterator[CrowdLabel]:
    votes = np.bincount(ratings.tasks, minlength=len(ratings.task_names))
    for row in zip(ratings.task_names, labels, probabilities.tolist(), votes.tolist(), strict=True):
        yield CrowdLabel(*row)


# First-error reports


def parse_first_error_reports(ratings: CrowdRatings) -> ReportArrays:
    """Return the reports. Raise `InvalidRatingsFile` for labels that are not a place in their trace."""
    is_censored = np.array([not label for label in ratings.labels], dtype=np.bool_)
    numbers = _parse_numbers(ratings, is_censored)
    lengths = _trace_lengths(ratings, numbers)
    _check_size(int((lengths[ratings.tasks] + 1).sum()))
    _raise_complaints(_find_outside(ratings, numbers, is_censored, lengths))
    domains = ratings_file.read_task_values(ratings, "domain") if "domain" in ratings.extra else [""] * len(lengths)
    return ReportArrays(
        traces=ratings.tasks,
        raters=ratings.workers,
        ends=np.where(numbers == _NONE, lengths[ratings.tasks], numbers),
        is_censored=is_censored,
        lengths=lengths,
        problems=np.arange(len(lengths)),
        domains=number_values(domains),
    )


def _parse_numbers(ratings: CrowdRatings, is_censored: Bools) -> Ints:
    """Return the label of each row, or the number of steps seen if the row has no label."""
    seen = ratings.extra.get("seen", [""] * len(ratings.lines))
    complaints, numbers = [], []
    for line, label, steps, censored in zip(ratings.lines, ratings.labels, seen, is_censored, strict=True):
        number = _parse_whole(steps if censored else label, lowest=0 if censored else _NONE)
        if number is None and censored:
            complaints.append(f"line {line}: no label and no number of steps in the column seen: enter one of them")
        elif number is None:
            complaints.append(
                f"line {line}: {label!r} is not the place of a first error: enter 0, 1, 2 … or -1 for none"
            )
        numbers.append(number or 0)
    _raise_complaints(complaints)
    return np.array(numbers, dtype=np.int64)


def _trace_lengths(ratings: CrowdRatings, numbers: Ints) -> Ints:
    if "steps" not in ratings.extra:
        return np.full(len(ratings.task_names), int(numbers.max(initial=0)) + 1, dtype=np.int64)
    lengths = [_parse_whole(text, lowest=1) for text in ratings_file.read_task_values(ratings, "steps")]
    _raise_complaints(
        f"line {line}: steps is {text!r}, not a whole number from 1 to {MAX_STEPS}"
        for line, text, task in zip(ratings.lines, ratings.extra["steps"], ratings.tasks.tolist(), strict=True)
        if lengths[task] is None
    )
    return np.array(lengths, dtype=np.int64)


def _check_size(places: int) -> None:
    """Reject files that exceed the memory limit: each report has evidence for each place of its trace."""
    limit = ratings_file.MAX_NUMBERS // len(EVENTS)
    if places > limit:
        raise TableTooLarge(
            f"the traces of all reports have {places:,} steps together, but at most {limit:,} fit into memory",
            number=places,
            limit=limit,
        )


def _find_outside(ratings: CrowdRatings, numbers: Ints, is_censored: Bools, lengths: Ints) -> Iterator[str]:
    most = np.where(is_censored, lengths[ratings.tasks], lengths[ratings.tasks] - 1)
    for row in np.flatnonzero(numbers > most):
        yield (
            f"line {ratings.lines[row]}: {numbers[row]} is outside a trace of {lengths[ratings.tasks[row]]} steps "
            "(the first step is 0)"
        )


def _parse_whole(text: str, *, lowest: int) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if lowest <= number <= MAX_STEPS and "_" not in text else None  # only Python would read 1_0 as ten


def _raise_complaints(complaints: Iterable[str]) -> None:
    listed = list(complaints)
    if listed:
        raise InvalidRatingsFile(listed)
