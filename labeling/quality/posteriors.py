"""Posteriors of the first error of traces, from their submissions and a stored fit of the rater model.

Nothing is fitted here, so a posterior is cheap, and a new submission changes only its own trace.
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

PROBABILITY_DIGITS = 6  # stored digits


class TraceShape(NamedTuple):
    """`positions` are those of the rateable steps, where the first error can be."""

    positions: list[int]
    n_steps: int
    domain: str
    problem_id: int


class ObservedFirstError(NamedTuple):
    """The first error of one submission: a position, or None after `n_passed` rateable steps."""

    trace_id: int
    rater_id: int
    first_error: int | None
    n_passed: int
    is_censored: bool


@dataclass(frozen=True)
class Posterior:
    """The probability of each place, in the order of `shape.positions`, followed by "no error"."""

    fit_id: int
    fit_number: int
    shape: TraceShape
    places: Sequence[float]

    @property
    def leading(self) -> int | None:
        best = int(np.argmax(self.places))
        return self.shape.positions[best] if best < len(self.shape.positions) else None

    def probability_at(self, first_error: int | None) -> float:
        if first_error is None:
            return self.places[-1]
        return dict(zip(self.shape.positions, self.places, strict=False)).get(first_error, 0.0)

    def probability_after(self, step: int) -> float:
        """Return P(E > step)."""
        later = sum(p for at, p in zip(self.shape.positions, self.places, strict=False) if at > step)
        return min(later + self.places[-1], 1.0)

    def as_list(self) -> list[float]:
        """Return the probability of every step, 0 for context, then of "no error", as stored in a consensus."""
        by_position = dict(zip(self.shape.positions, self.places, strict=False))
        steps = range(
            max(self.shape.n_steps, self.shape.positions[-1] + 1)
        )  # imported files can rate steps past the end
        return [
            *(round(by_position.get(step, 0.0), PROBABILITY_DIGITS) for step in steps),
            round(self.places[-1], PROBABILITY_DIGITS),
        ]


def load_trace_shapes(trace_ids: Iterable[int]) -> dict[int, TraceShape]:
    rows = Step.objects.filter(trace_id__in=list(trace_ids), is_rateable=True).order_by("trace_id", "position")
    shapes: dict[int, TraceShape] = {}
    for trace_id, position, n_steps, domain, problem in rows.values_list(
        "trace_id", "position", "trace__n_steps", "trace__problem__domain", "trace__problem_id"
    ):
        shapes.setdefault(trace_id, TraceShape([], n_steps, domain, problem)).positions.append(position)
    return shapes


def compute_posteriors(
    fit: RaterModelFit, shapes: Mapping[int, TraceShape], observations: Sequence[ObservedFirstError]
) -> dict[int, Posterior]:
    """Return the posterior of each observed trace under the rates, hazards and temperature of a fit."""
    reports, traces, raters = build_report_arrays(shapes, observations)
    if not traces:
        return {}
    rates = np.array([fit.rates.get(str(rater), fit.rates["others"]) for rater in raters])
    hazards = np.array([fit.hazards["domains"].get(shapes[trace].domain, fit.hazards["all"]) for trace in traces])
    by_trace = ReportArrays(**{**vars(reports), "domains": np.arange(len(traces))})
    places, sharp = first_error_dawid_skene.compute_posterior(by_trace, rates=rates, hazards=hazards)
    cooled = calibration.apply_temperature(
        posterior=sharp, places=places, temperature=Temperature(fit.temperature, fit.n_gold)
    )
    parts: list[Floats] = np.split(cooled, places.starts[1:])
    return {
        trace: Posterior(fit.pk, fit.number, shapes[trace], part.tolist())
        for trace, part in zip(traces, parts, strict=True)
    }


def build_report_arrays(
    shapes: Mapping[int, TraceShape], observations: Sequence[ObservedFirstError]
) -> tuple[ReportArrays, list[int], list[int]]:
    """Return the observations as arrays, with the trace ids and rater ids that the array indices refer to."""
    rows = [row for row in observations if row.trace_id in shapes]
    traces, raters = sorted({row.trace_id for row in rows}), sorted({row.rater_id for row in rows})
    trace_index = {trace: n for n, trace in enumerate(traces)}
    rater_index = {rater: n for n, rater in enumerate(raters)}
    domains = sorted({shapes[trace].domain for trace in traces})
    _, problems = np.unique([shapes[trace].problem_id for trace in traces], return_inverse=True)
    reports = ReportArrays(
        traces=np.array([trace_index[row.trace_id] for row in rows], dtype=np.int64),
        raters=np.array([rater_index[row.rater_id] for row in rows], dtype=np.int64),
        ends=np.array([_report_end(shapes[row.trace_id], row) for row in rows], dtype=np.int64),
        is_censored=np.array([row.is_censored for row in rows], dtype=np.bool_),
        lengths=np.array([len(shapes[trace].positions) for trace in traces], dtype=np.int64),
        problems=problems.astype(np.int64),
        domains=np.array([domains.index(shapes[trace].domain) for trace in traces], dtype=np.int64),
    )
    return reports, traces, raters


def _report_end(shape: TraceShape, observation: ObservedFirstError) -> int:
    if observation.first_error is not None:
        return shape.positions.index(observation.first_error)
    return min(observation.n_passed, len(shape.positions)) if observation.is_censored else len(shape.positions)
