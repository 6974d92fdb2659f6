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

from labeling.agreement import evidence, hazards, reports
from labeling.agreement.arrays import Floats, Ints, sum_by
from labeling.agreement.evidence import Evidence
from labeling.agreement.reports import Places, Reports

STRENGTH = 10.0  # occasions that the pooled rate weighs in a rater's own
_FIRST_GUESS = np.array([0.05, 0.6, 0.3])  # false alarm, detection, late stop


@dataclass(frozen=True)
class Fit:
    """`posterior` is over `there`, places laid end to end; `rates` (raters, 3): false alarm, detection, late stop, and
    `common` those of all raters together."""

    there: Places
    posterior: Floats
    rates: Floats
    common: Floats
    hazards: Floats
    log_likelihood: float
    rounds: int
    has_converged: bool


def fit(told: Reports, *, most_rounds: int = 200, tolerance: float = 1e-5) -> Fit:
    there = reports.places(told.lengths)
    seen = evidence.of_reports(told, there)
    posterior = _first_posterior(told, there)
    rates, common, hazard = _maximise(seen, posterior, told, there)
    before, rounds, gained = -np.inf, 0, np.inf
    while rounds < most_rounds and gained > tolerance * max(len(told.traces), 1):
        posterior, likelihood = _expect(seen, rates, hazard, told, there)
        rates, common, hazard = _maximise(seen, posterior, told, there)
        gained, before, rounds = likelihood - before, likelihood, rounds + 1
    return Fit(there, posterior, rates, common, hazard, before, rounds, gained <= tolerance * max(len(told.traces), 1))


def posterior(told: Reports, *, rates: Floats, hazard: Floats) -> tuple[Places, Floats]:
    """Of traces that a fit need not have seen, by the rates and hazards that it found: nothing is learned here."""
    there = reports.places(told.lengths)
    return there, _expect(evidence.of_reports(told, there), rates, hazard, told, there)[0]


def normalised(logs: Floats, there: Places) -> tuple[Floats, Floats]:
    """Probabilities within each trace from log-weights, and each trace's log-sum."""
    highest = np.maximum.reduceat(logs, there.starts) if there.n else logs
    weights = np.exp(logs - highest[there.traces])
    totals = np.bincount(there.traces, weights=weights, minlength=len(there.starts))
    return weights / totals[there.traces], highest + np.log(totals)


def most_likely(posterior: Floats, there: Places) -> tuple[Ints, Floats]:
    """Per trace the place with the highest posterior (its step, T for none), and that posterior."""
    if not there.n:
        return there.starts, posterior
    best = np.maximum.reduceat(posterior, there.starts)
    at_best = np.flatnonzero(posterior >= best[there.traces])
    _, first = np.unique(there.traces[at_best], return_index=True)
    return there.steps[at_best[first]], best


def _first_posterior(told: Reports, there: Places) -> Floats:
    """Shares of the uncensored votes, with a little everywhere."""
    says = ~told.is_censored
    votes = np.bincount(there.starts[told.traces[says]] + told.ends[says], minlength=there.n) + 0.1
    return votes / np.bincount(there.traces, weights=votes, minlength=told.n_traces)[there.traces]


def _expect(seen: Evidence, rates: Floats, hazard: Floats, told: Reports, there: Places) -> tuple[Floats, float]:
    logs = np.stack([np.log(rates), np.log1p(-rates)], axis=2).reshape(len(rates), 6)  # in the order of EVENTS
    weight = np.einsum("re,re->r", seen.counts, logs[seen.raters])
    evidence_at = np.bincount(seen.places, weights=weight, minlength=there.n)
    prior = hazards.log_prior(hazards=hazard, there=there, domains=told.domains)
    posterior, sums = normalised(evidence_at + prior, there)
    return posterior, float(sums.sum())


def _maximise(seen: Evidence, posterior: Floats, told: Reports, there: Places) -> tuple[Floats, Floats, Floats]:
    expected = sum_by(
        groups=seen.raters, rows=seen.counts * posterior[seen.places][:, None], n_groups=told.n_raters
    ).reshape(-1, 3, 2)
    pooled = expected.sum(axis=0) + STRENGTH * np.stack([_FIRST_GUESS, 1 - _FIRST_GUESS], axis=1)
    common = pooled[:, 0] / pooled.sum(axis=1)
    rates = (expected[:, :, 0] + STRENGTH * common) / (expected.sum(axis=2) + STRENGTH)
    hazard = hazards.fit(posterior=posterior, there=there, domains=told.domains)
    return np.clip(rates, 1e-6, 1 - 1e-6), np.clip(common, 1e-6, 1 - 1e-6), hazard
