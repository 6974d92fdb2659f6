"""Compute where the first error of a trace is, and how probably, from its reports and a fitted rater model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import rawsql
from labeling.models import RaterModelFit
from labeling.quality.submitted_reports import RevisionReport
from stats import calibration, first_error_dawid_skene
from stats.arrays import Floats
from stats.calibration import Temperature
from stats.first_error_reports import FirstErrorPlaces, ReportArrays

PROBABILITY_DIGITS = 6  # stored digits


class TraceShape(NamedTuple):
    """`positions` are the positions of the rateable steps, at which the first error can be."""

    positions: list[int]
    n_steps: int
    domain: str
    problem_id: int

    def place_of(self, first_error: int | None) -> int:
        """Return the index of a rateable step, or their number for no error."""
        return len(self.positions) if first_error is None else self.positions.index(first_error)


@dataclass(frozen=True)
class Posterior:
    """The probability that the first error is at each rateable step, by position, and that there is none."""

    fit_id: int
    n_steps: int
    by_position: Mapping[int, float]
    no_error: float

    @property
    def leading(self) -> int | None:
        position, probability = max(self.by_position.items(), key=lambda item: item[1])
        return position if probability >= self.no_error else None

    def probability_at(self, first_error: int | None) -> float:
        return self.no_error if first_error is None else self.by_position.get(first_error, 0.0)

    def probability_after(self, step: int) -> float:
        """Return P(E > step)."""
        later = sum(probability for position, probability in self.by_position.items() if position > step)
        return min(later + self.no_error, 1.0)

    def as_list(self) -> list[float]:
        """Return the probability of every step, 0 for context, then of "no error", as stored in a consensus."""
        steps = range(max(self.n_steps, max(self.by_position) + 1))  # imported files can rate steps past the end
        return [round(self.probability_at(place), PROBABILITY_DIGITS) for place in (*steps, None)]


def load_trace_shapes(trace_ids: Iterable[int]) -> dict[int, TraceShape]:
    rows = rawsql.fetch_rows(_LOAD_SHAPES, {"traces": list(trace_ids)})
    return {trace_id: TraceShape(*shape) for trace_id, *shape in rows}


_LOAD_SHAPES = """
SELECT t.id, s.positions, t.n_steps, p.domain, t.problem_id
FROM (SELECT trace_id, array_agg(position ORDER BY position) AS positions FROM labeling_step
      WHERE trace_id = ANY (%(traces)s::bigint[]) AND is_rateable GROUP BY trace_id) s
JOIN labeling_trace t ON t.id = s.trace_id JOIN labeling_problem p ON p.id = t.problem_id ORDER BY t.id"""


def compute_posteriors(
    fit: RaterModelFit, shapes: Mapping[int, TraceShape], reports: Sequence[RevisionReport]
) -> dict[int, Posterior]:
    """Return the posterior of each reported trace under the rates, hazards and temperature of a fit."""
    traces, places, cooled = compute_cooled_posterior(fit, shapes, reports)
    posteriors = {}
    for trace, part in zip(traces, np.split(cooled, places.starts[1:]) if traces else [], strict=True):
        *steps, no_error = part.tolist()
        by_position = dict(zip(shapes[trace].positions, steps, strict=True))
        posteriors[trace] = Posterior(fit.pk, shapes[trace].n_steps, by_position, no_error)
    return posteriors


def compute_cooled_posterior(
    fit: RaterModelFit, shapes: Mapping[int, TraceShape], reports: Sequence[RevisionReport]
) -> tuple[list[int], FirstErrorPlaces, Floats]:
    """Return the reported traces, their places, and the posterior."""
    traces, places, sharp = compute_sharp_posterior(fit, shapes, reports)
    temperature = Temperature(fit.temperature, fit.n_gold)
    return traces, places, calibration.apply_temperature(posterior=sharp, places=places, temperature=temperature)


def compute_sharp_posterior(
    fit: RaterModelFit, shapes: Mapping[int, TraceShape], reports: Sequence[RevisionReport]
) -> tuple[list[int], FirstErrorPlaces, Floats]:
    """Return the reported traces, their places, and the posterior before the temperature is applied."""
    arrays, traces, raters = build_report_arrays(shapes, reports)
    rates = np.array([fit.rates.get(str(rater), fit.rates["others"]) for rater in raters]).reshape(-1, 3)
    hazards = np.array([fit.hazards["domains"].get(shapes[trace].domain, fit.hazards["all"]) for trace in traces])
    by_trace = replace(arrays, domains=np.arange(len(traces)))
    places, sharp = first_error_dawid_skene.compute_posterior(by_trace, rates=rates, hazards=hazards)
    return traces, places, sharp


def build_report_arrays(
    shapes: Mapping[int, TraceShape], reports: Sequence[RevisionReport]
) -> tuple[ReportArrays, list[int], list[int]]:
    """Return the reports as arrays, with the trace ids and rater ids that the array indices refer to."""
    rows = [report for report in reports if report.trace_id in shapes]
    traces, trace_index = np.unique([row.trace_id for row in rows], return_inverse=True)
    raters, rater_index = np.unique([row.rater_id for row in rows], return_inverse=True)
    own = [shapes[trace] for trace in traces.tolist()]
    arrays = ReportArrays(
        traces=trace_index.astype(np.int64),
        raters=rater_index.astype(np.int64),
        ends=np.array([_report_end(shapes[row.trace_id], row) for row in rows], dtype=np.int64),
        is_censored=np.array([row.is_censored for row in rows], dtype=np.bool_),
        lengths=np.array([len(shape.positions) for shape in own], dtype=np.int64),
        problems=np.unique([shape.problem_id for shape in own], return_inverse=True)[1].astype(np.int64),
        domains=np.unique([shape.domain for shape in own], return_inverse=True)[1].astype(np.int64),
    )
    return arrays, traces.tolist(), raters.tolist()


def _report_end(shape: TraceShape, report: RevisionReport) -> int:
    return min(report.n_passed, len(shape.positions)) if report.is_censored else shape.place_of(report.position)
