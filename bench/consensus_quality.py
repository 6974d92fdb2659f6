"""Compare consensus rules for the first error on three crowds: first-error Dawid–Skene, step Dawid–Skene, step
majority.

Differences are paired over seeds, with a t interval. Also measures calibration with a temperature fitted on gold, and
the accuracy of automatic acceptance at a target of 0.90.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench import simulated_raters
from bench.simulated_raters import Kind, SimulatedCrowd
from stats import calibration, first_error_dawid_skene, first_error_reports
from stats.arrays import Bools, Floats, Ints
from stats.first_error_dawid_skene import FirstErrorFit
from stats.first_error_reports import ReportArrays
from stats.intervals import t_quantile

KINDS: tuple[Kind, ...] = ("own", "forgetful", "correlated")
_GOLD = 300


@dataclass(frozen=True)
class PairedAccuracy:
    kind: str
    raters: int
    accuracy: dict[str, float]
    over_steps: tuple[float, float]  # first-error minus step Dawid–Skene, 95 % interval
    over_majority: tuple[float, float]


@dataclass(frozen=True)
class TrustCalibration:
    kind: str
    error_before: float
    error_after: float
    temperature: float
    delivered: float
    accepted: float
    kept_no_promise: int


def compare_consensus(kind: Kind, *, raters: int, seeds: int = 30, traces: int = 400) -> PairedAccuracy:
    crowds = [
        simulated_raters.simulate_crowd(traces=traces, raters_per_trace=raters, kind=kind, seed=seed)
        for seed in range(seeds)
    ]
    right = {name: np.array([_share(rule(c.reports), c) for c in crowds]) for name, rule in _RULES.items()}
    first_error = right["first-error DS"]
    return PairedAccuracy(
        kind=kind,
        raters=raters,
        accuracy={name: float(found.mean()) for name, found in right.items()},
        over_steps=_interval(first_error - right["step DS"]),
        over_majority=_interval(first_error - right["step majority"]),
    )


def measure_trust(kind: Kind, *, raters: int = 3, seeds: int = 30) -> TrustCalibration:
    """Use a random part of the traces as gold, and measure calibration and acceptance on the others."""
    rows = [
        _trusted(simulated_raters.simulate_crowd(traces=1500, raters_per_trace=raters, kind=kind, seed=s))
        for s in range(seeds)
    ]
    before, after, cooled, right, accepted = np.array(rows).T
    return TrustCalibration(
        kind=kind,
        error_before=float(before.mean()),
        error_after=float(after.mean()),
        temperature=float(cooled.mean()),
        delivered=float(right.sum() / max(accepted.sum(), 1)),
        accepted=float(accepted.mean() / (1500 - _GOLD)),
        kept_no_promise=int((accepted == 0).sum()),
    )


def _trusted(crowd: SimulatedCrowd) -> tuple[float, float, float, int, int]:
    fit = first_error_dawid_skene.fit_reports(crowd.reports)
    is_gold = np.arange(len(crowd.truth)) < _GOLD
    at_truth = fit.places.steps == crowd.truth[fit.places.traces]
    found = calibration.fit_temperature(
        posterior=fit.posterior, places=fit.places, is_accepted=at_truth & is_gold[fit.places.traces]
    )
    cooled = calibration.apply_temperature(posterior=fit.posterior, places=fit.places, temperature=found)
    before, right = _sure(fit, fit.posterior, crowd)
    after, _ = _sure(fit, cooled, crowd)
    rule = calibration.choose_acceptance_threshold(confidences=after[is_gold], is_right=right[is_gold])
    taken = ~is_gold & (after >= (2.0 if rule.threshold is None else rule.threshold))
    errors = [
        calibration.expected_calibration_error(confidences=c[~is_gold], is_right=right[~is_gold])
        for c in (before, after)
    ]
    return errors[0], errors[1], found.value, int((taken & right).sum()), int(taken.sum())


def _sure(fit: FirstErrorFit, posterior: Floats, crowd: SimulatedCrowd) -> tuple[Floats, Bools]:
    steps, sure = first_error_reports.most_likely_places(posterior, fit.places)
    return sure, steps == crowd.truth


def _first_error(reports: ReportArrays) -> Ints:
    fit = first_error_dawid_skene.fit_reports(reports)
    return first_error_reports.most_likely_places(fit.posterior, fit.places)[0]


_RULES: dict[str, Callable[[ReportArrays], Ints]] = {
    "first-error DS": _first_error,
    "step DS": first_error_reports.dawid_skene_by_step,
    "step majority": first_error_reports.majority_by_step,
    "place majority": lambda reports: first_error_reports.majority_by_place(reports)[0],
}


def _share(found: Ints, crowd: SimulatedCrowd) -> float:
    return float((found == crowd.truth).mean())


def _interval(differences: Floats) -> tuple[float, float]:
    n, mean = len(differences), float(differences.mean())
    half = t_quantile(p=0.975, df=n - 1) * float(differences.std(ddof=1)) / n**0.5
    return mean - half, mean + half
