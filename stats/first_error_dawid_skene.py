"""Dawid-Skene for the place of the first error, with raters who stop there.

The hidden place E is in {0..T-1, none}, with a hazard per domain and position. Each rater has three rates: false alarm
(before E), detection (at E) and late stop (after E). Every step of EM has a closed form:

    E step   P(E = e) ∝ prior(e) Π over reports of the probability of the report if E = e
    M step   rate = expected events / expected occasions, shrunk toward the rates of all raters

A censored report contributes the steps it covers. The posterior is overconfident where raters share a blind spot, so
correct it with a temperature fitted on gold (`stats.calibration`).

This is the confusion matrix of A. P. Dawid, A. M. Skene (1979), doi:10.2307/2346806, with the order of steps built in:
three rates and a stopping rule replace (T + 1)² cells, as in discrete-time survival, D. R. Cox (1972),
doi:10.1111/j.2517-6161.1972.tb00899.x.
"""

from dataclasses import dataclass

import numpy as np

from stats import first_error_reports
from stats.arrays import Bools, Floats, Ints, sum_by
from stats.first_error_reports import FirstErrorPlaces, ReportArrays

EVENTS = ("false alarm", "passed before", "detection", "miss", "late stop", "passed late")
LAST_POSITION = 24  # later positions share one hazard
HAZARD_PRIOR_STRENGTH = 20.0  # weight of the coarser hazard, in traces
RATE_PRIOR_STRENGTH = 10.0  # weight of the pooled rate in a rater's own, in occasions
_FIRST_GUESS = np.array([0.05, 0.6, 0.3])  # false alarm, detection, late stop


@dataclass(frozen=True)
class FirstErrorFit:
    """`posterior` is over `places`; `rates` (raters, 3) are false alarm, detection and late stop, `common` the same for
    all raters together."""

    places: FirstErrorPlaces
    posterior: Floats
    rates: Floats
    common: Floats
    hazards: Floats
    log_likelihood: float
    rounds: int
    has_converged: bool


def fit_reports(
    reports: ReportArrays, *, possible: Bools | None = None, max_rounds: int = 200, tolerance: float = 1e-5
) -> FirstErrorFit:
    """Fit rates and posterior by EM. `possible` rules out places of traces with known answers (gold)."""
    places = first_error_reports.enumerate_places(reports.lengths)
    evidence = count_events(reports, places)
    votes = (places.count_votes(reports) + 0.1) * (1.0 if possible is None else possible)
    posterior = votes / np.bincount(places.traces, weights=votes, minlength=reports.n_traces)[places.traces]
    rates, common, hazards = _maximize(evidence, posterior, reports, places)
    least_gain = tolerance * max(len(reports.traces), 1)
    likelihood, rounds, gain = -np.inf, 0, np.inf
    while rounds < max_rounds and gain > least_gain:
        posterior, new_likelihood = _expect(evidence, rates, hazards, reports, places, possible)
        rates, common, hazards = _maximize(evidence, posterior, reports, places)
        gain, likelihood, rounds = new_likelihood - likelihood, new_likelihood, rounds + 1
    return FirstErrorFit(places, posterior, rates, common, hazards, likelihood, rounds, gain <= least_gain)


def compute_posterior(reports: ReportArrays, *, rates: Floats, hazards: Floats) -> tuple[FirstErrorPlaces, Floats]:
    """Return the posterior of any traces under the rates and hazards of an earlier fit."""
    places = first_error_reports.enumerate_places(reports.lengths)
    return places, _expect(count_events(reports, places), rates, hazards, reports, places)[0]


def normalize_within_traces(logs: Floats, places: FirstErrorPlaces) -> tuple[Floats, Floats]:
    """Return probabilities within each trace from log-weights, and each trace's log-sum."""
    highest = np.maximum.reduceat(logs, places.starts) if places.n else logs
    weights = np.exp(logs - highest[places.traces])
    totals = np.bincount(places.traces, weights=weights, minlength=len(places.starts))
    return weights / totals[places.traces], highest + np.log(totals)


# Evidence: what each report says about each place where the first error could be.


@dataclass(frozen=True)
class ReportEvidence:
    """One row per (report, place of its trace): the place, the rater, and counts in the order of EVENTS."""

    places: Ints
    raters: Ints
    counts: Floats


def count_events(reports: ReportArrays, places: FirstErrorPlaces) -> ReportEvidence:
    sizes = reports.lengths[reports.traces] + 1
    report = np.repeat(np.arange(len(reports.traces)), sizes)
    place = np.arange(len(report)) - np.repeat(np.cumsum(sizes) - sizes - places.starts[reports.traces], sizes)
    error, end = places.steps[place], reports.ends[report]
    stopped = reports.says_error[report]
    is_past = end > error
    counts = [
        stopped & (end < error),
        np.minimum(end, error),
        stopped & (end == error),
        is_past,
        stopped & is_past,
        np.where(is_past, end - 1 - error, 0),
    ]
    return ReportEvidence(place, reports.raters[report], np.stack(counts, axis=1).astype(np.float64))


def _expect(
    evidence: ReportEvidence,
    rates: Floats,
    hazards: Floats,
    reports: ReportArrays,
    places: FirstErrorPlaces,
    possible: Bools | None = None,
) -> tuple[Floats, float]:
    logs = event_logs(rates)
    weights = np.einsum("re,re->r", evidence.counts, logs[evidence.raters])
    log_likelihoods = np.bincount(evidence.places, weights=weights, minlength=places.n)
    logs = log_likelihoods + hazard_log_prior(hazards=hazards, places=places, domains=reports.domains)
    if possible is not None:
        logs = np.where(possible, logs, -np.inf)
    posterior, sums = normalize_within_traces(logs, places)
    return posterior, float(sums.sum())


def event_logs(rates: Floats) -> Floats:
    """Return the log-probability of each of EVENTS under rates (…, 3)."""
    return np.stack([np.log(rates), np.log1p(-rates)], axis=-1).reshape(*rates.shape[:-1], 6)


def _maximize(
    evidence: ReportEvidence, posterior: Floats, reports: ReportArrays, places: FirstErrorPlaces
) -> tuple[Floats, Floats, Floats]:
    rows = evidence.counts * posterior[evidence.places][:, None]
    expected = sum_by(groups=evidence.raters, rows=rows, n_groups=reports.n_raters).reshape(-1, 3, 2)
    pooled = expected.sum(axis=0) + RATE_PRIOR_STRENGTH * np.stack([_FIRST_GUESS, 1 - _FIRST_GUESS], axis=1)
    common = pooled[:, 0] / pooled.sum(axis=1)
    rates = (expected[:, :, 0] + RATE_PRIOR_STRENGTH * common) / (expected.sum(axis=2) + RATE_PRIOR_STRENGTH)
    hazards = fit_hazards(posterior=posterior, places=places, domains=reports.domains)
    return np.clip(rates, 1e-6, 1 - 1e-6), np.clip(common, 1e-6, 1 - 1e-6), hazards


# Hazards: how likely a first error is at each step, by domain and position, shrunk where data are few.


def fit_hazards(*, posterior: Floats, places: FirstErrorPlaces, domains: Ints) -> Floats:
    """Return the hazards (domains, positions) implied by a posterior over places."""
    n_domains = int(domains.max()) + 1 if len(domains) else 1
    cells, is_step = _hazard_cells(places, domains), ~places.is_none
    size = n_domains * (LAST_POSITION + 1)
    rows = np.column_stack([probability_not_before(posterior, places), posterior])[is_step]
    summed = sum_by(groups=cells[is_step], rows=rows, n_groups=size).reshape(n_domains, -1, 2)
    at_risk, errors = summed[..., 0], summed[..., 1]
    overall = (errors.sum() + 1) / (at_risk.sum() + 10)
    by_domain = _shrink(errors.sum(axis=1), at_risk.sum(axis=1), overall)
    return _shrink(errors, at_risk, by_domain[:, None])


def hazard_log_prior(*, hazards: Floats, places: FirstErrorPlaces, domains: Ints) -> Floats:
    """Return the prior log-probability of each first-error position."""
    h = hazards.ravel()[_hazard_cells(places, domains)]
    passed = np.where(places.is_none, 0.0, np.log1p(-h))
    before = np.cumsum(passed) - passed
    before -= before[places.starts[places.traces]]
    return np.asarray(before + np.where(places.is_none, 0.0, np.log(h)))


def probability_not_before(posterior: Floats, places: FirstErrorPlaces) -> Floats:
    """Return P(E ≥ this place), the posterior summed from here to the end of the trace."""
    running = np.cumsum(posterior)
    ends = np.append(places.starts[1:], places.n) - 1
    until_end = running[ends][places.traces] if places.n else running
    return np.asarray(until_end - running + posterior)


def _hazard_cells(places: FirstErrorPlaces, domains: Ints) -> Ints:
    return domains[places.traces] * (LAST_POSITION + 1) + np.minimum(places.steps, LAST_POSITION)


def _shrink(errors: Floats, at_risk: Floats, towards: Floats) -> Floats:
    return np.clip((errors + HAZARD_PRIOR_STRENGTH * towards) / (at_risk + HAZARD_PRIOR_STRENGTH), 1e-6, 1 - 1e-6)
