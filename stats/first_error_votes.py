"""Majority votes on the first error, for display and for few raters.

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

from stats import dawid_skene, first_error_dawid_skene, first_error_reports
from stats.arrays import Bools, Floats, Ints
from stats.first_error_reports import FirstErrorPlaces, ReportArrays
from stats.label_votes import LabelVotes


def majority_by_place(reports: ReportArrays) -> tuple[Ints, Floats]:
    """Return per trace the place that most uncensored reports name (the earlier one of a tie), and its share."""
    places = first_error_reports.enumerate_places(reports.lengths)
    uncensored = ~reports.is_censored
    ends = places.starts[reports.traces[uncensored]] + reports.ends[uncensored]
    votes = np.bincount(ends, minlength=places.n).astype(np.float64)
    n_votes = np.bincount(places.traces, weights=votes, minlength=reports.n_traces)
    return first_error_dawid_skene.most_likely_places(votes / np.maximum(n_votes, 1)[places.traces], places)


def majority_by_step(reports: ReportArrays) -> Ints:
    """Return per trace the first error, T for none."""
    places = first_error_reports.enumerate_places(reports.lengths)
    votes = collect_step_votes(reports, places)
    at_risk = np.bincount(votes.places, minlength=places.n)
    negative = np.bincount(votes.places[votes.is_negative], minlength=places.n)
    return _first_wrong_step(2 * negative > at_risk, places)


def dawid_skene_by_step(reports: ReportArrays) -> Ints:
    """Return per trace the first error, T for none."""
    places = first_error_reports.enumerate_places(reports.lengths)
    votes = collect_step_votes(reports, places)
    fit = dawid_skene.fit_votes(LabelVotes(votes.places, votes.raters, votes.is_negative.astype(np.int64), 2))
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
