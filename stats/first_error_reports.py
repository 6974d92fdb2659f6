"""The data shape of first-error work: what each rater reported of each trace, with censoring.

A report ends at step s: the first error is at s, or there is none (s = T, the trace's length), or the report was
*censored* after s steps (given up, lapsed, bad problem): no error among the first s, and nothing is known beyond. A
censored report never counts as "no error".
"""

from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Ints


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
            raise ValueError("every report has a trace, a rater, an end; every trace a length, a problem, a domain")
        if len(self.ends) and not (self.ends.min() >= 0 and (self.ends <= self.lengths[self.traces]).all()):
            raise ValueError("a report ends inside its trace or right behind its last step")

    @property
    def n_traces(self) -> int:
        return len(self.lengths)

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
    """The places where a first error can be, laid end to end: T + 1 per trace, the last one meaning "none"."""

    starts: Ints
    traces: Ints
    steps: Ints
    is_none: Bools

    @property
    def n(self) -> int:
        return len(self.traces)


def reports_from_positions(
    *, traces: Ints, raters: Ints, positions: Ints, lengths: Ints, problems: Ints | None = None
) -> ReportArrays:
    """Uncensored reports in ProcessBench's way of writing: the 0-based first error, -1 for none."""
    return ReportArrays(
        traces=traces,
        raters=raters,
        ends=np.where(positions < 0, lengths[traces], positions),
        is_censored=np.zeros(len(traces), dtype=np.bool_),
        lengths=lengths,
        problems=np.arange(len(lengths)) if problems is None else problems,
        domains=np.zeros(len(lengths), dtype=np.int64),
    )


def enumerate_places(lengths: Ints) -> FirstErrorPlaces:
    sizes = lengths + 1
    starts = np.cumsum(sizes) - sizes
    traces = np.repeat(np.arange(len(lengths)), sizes)
    steps = np.arange(len(traces)) - starts[traces]
    return FirstErrorPlaces(starts, traces, steps, steps == lengths[traces])
