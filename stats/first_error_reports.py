"""First errors: what each rater reported for each trace, with censoring, and majority votes on these reports.

A report ends at step s. Either the first error is at s, or s = T (the trace's length) and the trace has no error, or
the report is *censored* after s steps (given up, lapsed, bad problem): the first s steps have no error, and nothing is
known about the rest. A censored report never counts as "no error".

    majority_by_place    the place that most reports name, with its share
    majority_by_step     the first step that more than half of the raters still at risk call wrong
    dawid_skene_by_step  the first step that Dawid-Skene over single steps calls wrong with probability ½ or more

`first_error_dawid_skene` is more accurate from three raters on. A rater is at risk at a step until they have reported
an error before it, so votes after a rater's own first error do not count.

Majority of at least three for the first wrong step: C. Zheng et al. (2024), "ProcessBench", arXiv:2412.06559; A. P.
Dawid, A. M. Skene (1979), doi:10.2307/2346806.
"""

from dataclasses import dataclass

import numpy as np

from stats import label_votes
from stats.arrays import Bools, Floats, Ints
from stats.label_votes import LabelVotes


@dataclass(frozen=True)
class ReportArrays:
    """One row per report; `lengths`, `problems`, `domains` are per trace. Traces and raters number from 0."""

    traces: Ints
    raters: Ints
    ends: Ints
    is_censored: Bools
    lengths: Ints
    problems: Ints
    domains: Ints

    def __post_init__(self) -> None:
        rows = {len(self.traces), len(self.raters), len(self.ends), len(self.is_censored)}
        if len(rows) != 1 or len({len(self.lengths), len(self.problems), len(self.domains)}) != 1:
            raise ValueError("reports need a trace, a rater and an end; traces a length, a problem and a domain")
        if len(self.ends) and not (self.ends.min() >= 0 and (self.ends <= self.lengths[self.traces]).all()):
            raise ValueError("a report must end inside its trace or right after its last step")

    @property
    def n_traces(self) -> int:
        return len(self.lengths)

    @property
    def n_problems(self) -> int:
        return int(self.problems.max()) + 1 if self.n_traces else 0

    @property
    def n_raters(self) -> int:
        return int(self.raters.max()) + 1 if len(self.raters) else 0

    @property
    def says_error(self) -> Bools:
        return ~self.is_censored & (self.ends < self.lengths[self.traces])

    @property
    def says_none(self) -> Bools:
        return ~self.is_censored & ~self.says_error


@dataclass(frozen=True)
class FirstErrorPlaces:
    """All possible places of a first error, trace after trace: T + 1 per trace, the last one meaning "none"."""

    starts: Ints
    traces: Ints
    steps: Ints
    is_none: Bools

    @property
    def n(self) -> int:
        return len(self.traces)

    def count_votes(self, reports: ReportArrays) -> Floats:
        """Return how many uncensored reports name each place."""
        uncensored = ~reports.is_censored
        ends = self.starts[reports.traces[uncensored]] + reports.ends[uncensored]
        return np.bincount(ends, minlength=self.n).astype(np.float64)


def reports_from_positions(*, traces: Ints, raters: Ints, positions: Ints, lengths: Ints) -> ReportArrays:
    """Return uncensored reports from ProcessBench's notation: the 0-based first error, -1 for none."""
    return ReportArrays(
        traces=traces,
        raters=raters,
        ends=np.where(positions < 0, lengths[traces], positions),
        is_censored=np.zeros(len(traces), dtype=np.bool_),
        lengths=lengths,
        problems=np.arange(len(lengths)),
        domains=np.zeros(len(lengths), dtype=np.int64),
    )


def enumerate_places(lengths: Ints) -> FirstErrorPlaces:
    sizes = lengths + 1
    starts = np.cumsum(sizes) - sizes
    traces = np.repeat(np.arange(len(lengths)), sizes)
    steps = np.arange(len(traces)) - starts[traces]
    return FirstErrorPlaces(starts, traces, steps, steps == lengths[traces])


def most_likely_places(posterior: Floats, places: FirstErrorPlaces) -> tuple[Ints, Floats]:
    """Return per trace the most likely place (its step, T for none) and its probability."""
    if not places.n:
        return places.starts, posterior
    best = np.maximum.reduceat(posterior, places.starts)
    at_best = np.flatnonzero(posterior >= best[places.traces])
    _, first = np.unique(places.traces[at_best], return_index=True)
    return places.steps[at_best[first]], best


def majority_by_place(reports: ReportArrays) -> tuple[Ints, Floats]:
    """Return per trace the place that most uncensored reports name (the earlier one of a tie), and its share."""
    places = enumerate_places(reports.lengths)
    votes = places.count_votes(reports)
    n_votes = np.bincount(places.traces, weights=votes, minlength=reports.n_traces)
    return most_likely_places(votes / np.maximum(n_votes, 1)[places.traces], places)


def majority_by_step(reports: ReportArrays) -> Ints:
    """Return per trace the first error, T for none."""
    places = enumerate_places(reports.lengths)
    votes = collect_step_votes(reports, places)
    at_risk = np.bincount(votes.places, minlength=places.n)
    negative = np.bincount(votes.places[votes.is_negative], minlength=places.n)
    return _first_wrong_step(2 * negative > at_risk, places)


def dawid_skene_by_step(reports: ReportArrays) -> Ints:
    """Return per trace the first error, T for none."""
    places = enumerate_places(reports.lengths)
    votes = collect_step_votes(reports, places)
    fit = label_votes.fit_votes(LabelVotes(votes.places, votes.raters, votes.is_negative.astype(np.int64), 2))
    judged = np.flatnonzero(np.bincount(votes.places, minlength=places.n))
    is_wrong = np.zeros(places.n, dtype=np.bool_)
    is_wrong[judged] = fit.posterior[judged, 1] >= 0.5
    return _first_wrong_step(is_wrong, places)


@dataclass(frozen=True)
class StepVotes:
    """One row per (report, step that its rater judged while at risk)."""

    places: Ints
    raters: Ints
    is_negative: Bools


def collect_step_votes(reports: ReportArrays, places: FirstErrorPlaces) -> StepVotes:
    n_judged = np.where(reports.says_error, reports.ends + 1, reports.ends)
    report = np.repeat(np.arange(len(n_judged)), n_judged)
    step = np.arange(len(report)) - np.repeat(np.cumsum(n_judged) - n_judged, n_judged)
    negative = reports.says_error[report] & (step == reports.ends[report])
    return StepVotes(places.starts[reports.traces[report]] + step, reports.raters[report], negative)


def _first_wrong_step(is_wrong: Bools, places: FirstErrorPlaces) -> Ints:
    """Return the first wrong place of every trace; the "none" place ends each search."""
    stops = np.flatnonzero(is_wrong | places.is_none)
    _, first = np.unique(places.traces[stops], return_index=True)
    return places.steps[stops[first]]
