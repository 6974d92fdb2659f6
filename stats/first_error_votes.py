"""The place of the first error by counting: over steps, over places, and by step-wise Dawid–Skene.

    by_steps    the first step that more than half of the raters still at risk call wrong
    by_places   the place that most reports name (with its share; the earlier one of a tie)
    by_models   the first step that Dawid–Skene over single steps holds for wrong with probability ½ or more

Counting is for showing, and for few raters; `first_error_dawid_skene` is the better judge from three raters on. A rater
is at risk at a step until they have reported an error before it; nobody's vote counts behind their own first error.

Majority of at least three for the first wrong step: C. Zheng et al. (2024), "ProcessBench", arXiv:2412.06559; A. P.
Dawid, A. M. Skene (1979), doi:10.2307/2346806.
"""

from dataclasses import dataclass

import numpy as np

from stats import dawid_skene, first_error_dawid_skene, first_error_reports
from stats.arrays import Bools, Floats, Ints
from stats.first_error_reports import FirstErrorPlaces, ReportArrays
from stats.label_votes import LabelVotes


@dataclass(frozen=True)
class StepVotes:
    """One row per (report, step that its rater was at risk at and judged)."""

    places: Ints
    raters: Ints
    is_negative: Bools


def collect_step_votes(told: ReportArrays, there: FirstErrorPlaces) -> StepVotes:
    judged = np.where(told.says_error, told.ends + 1, told.ends)
    report = np.repeat(np.arange(len(judged)), judged)
    step = np.arange(len(report)) - np.repeat(np.cumsum(judged) - judged, judged)
    negative = told.says_error[report] & (step == told.ends[report])
    return StepVotes(there.starts[told.traces[report]] + step, told.raters[report], negative)


def majority_by_step(told: ReportArrays) -> Ints:
    """Per trace the first error, T for none."""
    there = first_error_reports.enumerate_places(told.lengths)
    votes = collect_step_votes(told, there)
    at_risk = np.bincount(votes.places, minlength=there.n)
    against = np.bincount(votes.places[votes.is_negative], minlength=there.n)
    return _first_wrong_step(2 * against > at_risk, there)


def majority_by_place(told: ReportArrays) -> tuple[Ints, Floats]:
    """Per trace the place that most uncensored reports name, and its share of them."""
    there = first_error_reports.enumerate_places(told.lengths)
    says = ~told.is_censored
    votes = np.bincount(there.starts[told.traces[says]] + told.ends[says], minlength=there.n).astype(np.float64)
    cast = np.bincount(there.traces, weights=votes, minlength=told.n_traces)
    return first_error_dawid_skene.most_likely_places(votes / np.maximum(cast, 1)[there.traces], there)


def dawid_skene_by_step(told: ReportArrays) -> Ints:
    """Per trace the first error by Dawid–Skene over single steps, T for none."""
    there = first_error_reports.enumerate_places(told.lengths)
    votes = collect_step_votes(told, there)
    fit = dawid_skene.fit_votes(LabelVotes(votes.places, votes.raters, votes.is_negative.astype(np.int64), 2))
    judged = np.flatnonzero(np.bincount(votes.places, minlength=there.n))
    is_wrong = np.zeros(there.n, dtype=np.bool_)
    is_wrong[judged] = fit.posterior[judged, 1] >= 0.5
    return _first_wrong_step(is_wrong, there)


def _first_wrong_step(is_wrong: Bools, there: FirstErrorPlaces) -> Ints:
    """The first wrong place of every trace; its "none" place stops every search."""
    stops = np.flatnonzero(is_wrong | there.is_none)
    _, first = np.unique(there.traces[stops], return_index=True)
    return there.steps[stops[first]]
