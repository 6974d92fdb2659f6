"""Dawid–Skene on the place of the first error: raters who stop there are modelled as they work.

Hidden is E in {0..T-1, none} with a hazard by domain and position (`hazards`); a rater has a false-alarm rate f before
E, a detection rate d at E and a late-detection rate g after it (`evidence`). All of EM is in closed form:

    E step   P(E = e) ∝ prior(e) Π over reports of the probability of what the rater did if E = e
    M step   f, d, g = expected events / expected occasions, shrunk towards the rates of all raters

Censored reports count for what was seen. A place is a step or "none"; the posterior is too sure of itself where raters
share a blind spot, so read it through a `temperature` fitted on gold.

The confusion matrix of A. P. Dawid, A. M. Skene (1979), doi:10.2307/2346806, with the order of steps built in: three
rates and a stopping rule in place of (T + 1)² cells, as in discrete-time survival, D. R. Cox (1972),
doi:10.1111/j.2517-6161.1972.tb00899.x.
"""

from dataclasses import dataclass

import numpy as np

from stats import first_error_reports
from stats.arrays import Floats, Ints, sum_by
from stats.first_error_reports import FirstErrorPlaces, ReportArrays

# What a first-error report says for each place where the first error could be: counts of five kinds of event.


EVENTS = ("false alarm", "passed before", "detection", "miss", "late stop", "passed late")


@dataclass(frozen=True)
class ReportEvidence:
    """One row per (report, place of its trace): the place, the rater, the counts in the order of EVENTS."""

    places: Ints
    raters: Ints
    counts: Floats


def count_events(reports: ReportArrays, there: FirstErrorPlaces) -> ReportEvidence:
    sizes = reports.lengths[reports.traces] + 1
    report = np.repeat(np.arange(len(reports.traces)), sizes)
    place = np.arange(len(report)) - np.repeat(np.cumsum(sizes) - sizes - there.starts[reports.traces], sizes)
    error, end = there.steps[place], reports.ends[report]
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


# How likely a first error is at each step, by domain and position, shrunk where little was seen.


LAST_POSITION = 24  # later positions share one hazard
HAZARD_PRIOR_STRENGTH = 20.0  # traces that the coarser hazard weighs


def fit_hazards(*, posterior: Floats, there: FirstErrorPlaces, domains: Ints) -> Floats:
    """(domains, positions): the hazards that this posterior over places implies."""
    n_domains = int(domains.max()) + 1 if len(domains) else 1
    cell, is_step = _cells(there, domains), ~there.is_none
    size = n_domains * (LAST_POSITION + 1)
    still_right = probability_not_before(posterior, there)
    rows = np.column_stack([still_right, posterior])[is_step]
    summed = sum_by(groups=cell[is_step], rows=rows, n_groups=size).reshape(n_domains, -1, 2)
    seen, errors = summed[..., 0], summed[..., 1]
    overall = (errors.sum() + 1) / (seen.sum() + 10)
    of_domain = _shrink(errors.sum(axis=1), seen.sum(axis=1), overall)
    return _shrink(errors, seen, of_domain[:, None])


def hazard_log_prior(*, hazards: Floats, there: FirstErrorPlaces, domains: Ints) -> Floats:
    """The log-probability of each place before any report."""
    h = hazards.ravel()[_cells(there, domains)]
    passed = np.where(there.is_none, 0.0, np.log1p(-h))
    before = np.cumsum(passed) - passed
    before -= before[there.starts[there.traces]]
    return np.asarray(before + np.where(there.is_none, 0.0, np.log(h)))


def probability_not_before(posterior: Floats, there: FirstErrorPlaces) -> Floats:
    """P(E ≥ this place), the sum of the posterior from here to the end of the trace."""
    running = np.cumsum(posterior)
    ends = np.append(there.starts[1:], there.n) - 1
    until_end = running[ends][there.traces] if there.n else running
    return np.asarray(until_end - running + posterior)


def _cells(there: FirstErrorPlaces, domains: Ints) -> Ints:
    return domains[there.traces] * (LAST_POSITION + 1) + np.minimum(there.steps, LAST_POSITION)


def _shrink(errors: Floats, seen: Floats, towards: Floats) -> Floats:
    return np.clip((errors + HAZARD_PRIOR_STRENGTH * towards) / (seen + HAZARD_PRIOR_STRENGTH), 1e-6, 1 - 1e-6)


RATE_PRIOR_STRENGTH = 10.0  # occasions that the pooled rate weighs in a rater's own
_FIRST_GUESS = np.array([0.05, 0.6, 0.3])  # false alarm, detection, late stop


@dataclass(frozen=True)
class FirstErrorFit:
    """`posterior` is over `there`, places laid end to end; `rates` (raters, 3): false alarm, detection, late stop, and
    `common` those of all raters together."""

    there: FirstErrorPlaces
    posterior: Floats
    rates: Floats
    common: Floats
    hazards: Floats
    log_likelihood: float
    rounds: int
    has_converged: bool


def fit_reports(told: ReportArrays, *, max_rounds: int = 200, tolerance: float = 1e-5) -> FirstErrorFit:
    there = first_error_reports.enumerate_places(told.lengths)
    seen = count_events(told, there)
    posterior = _first_posterior(told, there)
    rates, common, hazard = _maximize(seen, posterior, told, there)
    before, rounds, gained = -np.inf, 0, np.inf
    while rounds < max_rounds and gained > tolerance * max(len(told.traces), 1):
        posterior, likelihood = _expect(seen, rates, hazard, told, there)
        rates, common, hazard = _maximize(seen, posterior, told, there)
        gained, before, rounds = likelihood - before, likelihood, rounds + 1
    return FirstErrorFit(
        there, posterior, rates, common, hazard, before, rounds, gained <= tolerance * max(len(told.traces), 1)
    )


def compute_posterior(told: ReportArrays, *, rates: Floats, hazard: Floats) -> tuple[FirstErrorPlaces, Floats]:
    """Of traces that a fit need not have seen, by the rates and hazards that it found: nothing is learned here."""
    there = first_error_reports.enumerate_places(told.lengths)
    return there, _expect(count_events(told, there), rates, hazard, told, there)[0]


def normalize_within_traces(logs: Floats, there: FirstErrorPlaces) -> tuple[Floats, Floats]:
    """Probabilities within each trace from log-weights, and each trace's log-sum."""
    highest = np.maximum.reduceat(logs, there.starts) if there.n else logs
    weights = np.exp(logs - highest[there.traces])
    totals = np.bincount(there.traces, weights=weights, minlength=len(there.starts))
    return weights / totals[there.traces], highest + np.log(totals)


def most_likely_places(posterior: Floats, there: FirstErrorPlaces) -> tuple[Ints, Floats]:
    """Per trace the place with the highest posterior (its step, T for none), and that posterior."""
    if not there.n:
        return there.starts, posterior
    best = np.maximum.reduceat(posterior, there.starts)
    at_best = np.flatnonzero(posterior >= best[there.traces])
    _, first = np.unique(there.traces[at_best], return_index=True)
    return there.steps[at_best[first]], best


def _first_posterior(told: ReportArrays, there: FirstErrorPlaces) -> Floats:
    """Shares of the uncensored votes, with a little everywhere."""
    says = ~told.is_censored
    votes = np.bincount(there.starts[told.traces[says]] + told.ends[says], minlength=there.n) + 0.1
    return votes / np.bincount(there.traces, weights=votes, minlength=told.n_traces)[there.traces]


def _expect(
    seen: ReportEvidence, rates: Floats, hazard: Floats, told: ReportArrays, there: FirstErrorPlaces
) -> tuple[Floats, float]:
    logs = np.stack([np.log(rates), np.log1p(-rates)], axis=2).reshape(len(rates), 6)  # in the order of EVENTS
    weight = np.einsum("re,re->r", seen.counts, logs[seen.raters])
    evidence_at = np.bincount(seen.places, weights=weight, minlength=there.n)
    prior = hazard_log_prior(hazards=hazard, there=there, domains=told.domains)
    posterior, sums = normalize_within_traces(evidence_at + prior, there)
    return posterior, float(sums.sum())


def _maximize(
    seen: ReportEvidence, posterior: Floats, told: ReportArrays, there: FirstErrorPlaces
) -> tuple[Floats, Floats, Floats]:
    expected = sum_by(
        groups=seen.raters, rows=seen.counts * posterior[seen.places][:, None], n_groups=told.n_raters
    ).reshape(-1, 3, 2)
    pooled = expected.sum(axis=0) + RATE_PRIOR_STRENGTH * np.stack([_FIRST_GUESS, 1 - _FIRST_GUESS], axis=1)
    common = pooled[:, 0] / pooled.sum(axis=1)
    rates = (expected[:, :, 0] + RATE_PRIOR_STRENGTH * common) / (expected.sum(axis=2) + RATE_PRIOR_STRENGTH)
    hazard = fit_hazards(posterior=posterior, there=there, domains=told.domains)
    return np.clip(rates, 1e-6, 1 - 1e-6), np.clip(common, 1e-6, 1 - 1e-6), hazard
