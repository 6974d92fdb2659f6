"""Where the first error of a trace is, and how probably: its readings, weighed by what a fit knows of their raters.

Nothing is fitted here, so that one trace costs nothing, and a reading moves no trace but its own. Reads only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labeling.models import RaterModelFit, Step
from stats import calibration, first_error_dawid_skene
from stats.arrays import Floats
from stats.calibration import Temperature
from stats.first_error_reports import ReportArrays

PROBABILITY_DIGITS = 6  # kept of a probability


class TraceShape(NamedTuple):
    """Where the first error of a trace can be: positions of its rateable steps."""

    positions: list[int]
    n_steps: int
    domain: str
    problem_id: int


class ObservedFirstError(NamedTuple):
    """What one reading saw: a position, or nothing after so many rateable steps."""

    trace_id: int
    rater_id: int
    first_error: int | None
    n_passed: int
    is_censored: bool


@dataclass(frozen=True)
class Posterior:
    """The probability of each place, in the order of `positions`, and of "no error" behind them."""

    fit_id: int
    fit_number: int
    shape: TraceShape
    places: Sequence[float]

    @property
    def leading(self) -> int | None:
        best = int(np.argmax(self.places))
        return self.shape.positions[best] if best < len(self.shape.positions) else None

    def of(self, first_error: int | None) -> float:
        if first_error is None:
            return self.places[-1]
        return dict(zip(self.shape.positions, self.places, strict=False)).get(first_error, 0.0)

    def after(self, step: int) -> float:
        """P(E > step): the trace is still right there."""
        later = sum(p for at, p in zip(self.shape.positions, self.places, strict=False) if at > step)
        return min(later + self.places[-1], 1.0)

    def listed(self) -> list[float]:
        """By step from the first to the last, context being 0, then "no error": as a consensus keeps it."""
        at = dict(zip(self.shape.positions, self.places, strict=False))
        steps = range(max(self.shape.n_steps, self.shape.positions[-1] + 1))  # a file may rate steps past the end
        return [
            *(round(at.get(step, 0.0), PROBABILITY_DIGITS) for step in steps),
            round(self.places[-1], PROBABILITY_DIGITS),
        ]


def load_trace_shapes(trace_ids: Iterable[int]) -> dict[int, TraceShape]:
    rows = Step.objects.filter(trace_id__in=list(trace_ids), is_rateable=True).order_by("trace_id", "position")
    found: dict[int, TraceShape] = {}
    for trace_id, position, n_steps, domain, problem in rows.values_list(
        "trace_id", "position", "trace__n_steps", "trace__problem__domain", "trace__problem_id"
    ):
        found.setdefault(trace_id, TraceShape([], n_steps, domain, problem)).positions.append(position)
    return found


def compute_posteriors(
    fit: RaterModelFit, told: Mapping[int, TraceShape], seen: Sequence[ObservedFirstError]
) -> dict[int, Posterior]:
    """Of each trace that somebody read, by the rates, the hazards and the temperature of a fit."""
    reports, traces, raters = build_report_arrays(told, seen)
    if not traces:
        return {}
    rates = np.array([fit.rates.get(str(rater), fit.rates["others"]) for rater in raters])
    hazards = np.array([fit.hazards["domains"].get(told[trace].domain, fit.hazards["all"]) for trace in traces])
    by_trace = ReportArrays(**{**vars(reports), "domains": np.arange(len(traces))})
    places, sharp = first_error_dawid_skene.compute_posterior(by_trace, rates=rates, hazards=hazards)
    cooled = calibration.apply_temperature(
        posterior=sharp, places=places, temperature=Temperature(fit.temperature, fit.n_gold)
    )
    parts: list[Floats] = np.split(cooled, places.starts[1:])
    return {
        trace: Posterior(fit.pk, fit.number, told[trace], part.tolist())
        for trace, part in zip(traces, parts, strict=True)
    }


def build_report_arrays(
    told: Mapping[int, TraceShape], seen: Sequence[ObservedFirstError]
) -> tuple[ReportArrays, list[int], list[int]]:
    """The readings in the shape of the arithmetic, with the traces and the raters that its numbers stand for."""
    kept = [each for each in seen if each.trace_id in told]
    traces, raters = sorted({each.trace_id for each in kept}), sorted({each.rater_id for each in kept})
    trace_at = {trace: n for n, trace in enumerate(traces)}
    rater_at = {rater: n for n, rater in enumerate(raters)}
    domains = sorted({told[trace].domain for trace in traces})
    _, problems = np.unique([told[trace].problem_id for trace in traces], return_inverse=True)
    reports = ReportArrays(
        traces=np.array([trace_at[each.trace_id] for each in kept], dtype=np.int64),
        raters=np.array([rater_at[each.rater_id] for each in kept], dtype=np.int64),
        ends=np.array([_report_end(told[each.trace_id], each) for each in kept], dtype=np.int64),
        is_censored=np.array([each.is_censored for each in kept], dtype=np.bool_),
        lengths=np.array([len(told[trace].positions) for trace in traces], dtype=np.int64),
        problems=problems.astype(np.int64),
        domains=np.array([domains.index(told[trace].domain) for trace in traces], dtype=np.int64),
    )
    return reports, traces, raters


def _report_end(shape: TraceShape, seen: ObservedFirstError) -> int:
    if seen.first_error is not None:
        return shape.positions.index(seen.first_error)
    return min(seen.n_passed, len(shape.positions)) if seen.is_censored else len(shape.positions)
