"""First-error reports: what each rater reported for each trace, with censoring.

A report ends at step s. Either the first error is at s, or s = T (the trace's length) and the trace has no error, or
the report is *censored* after s steps (given up, lapsed, bad problem): the first s steps have no error, and nothing is
known about the rest. A censored report never counts as "no error".
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
            raise ValueError("reports need a trace, a rater and an end; traces a length, a problem and a domain")
        if len(self.ends) and not (self.ends.min() >= 0 and (self.ends <= self.lengths[self.traces]).all()):
            raise ValueError("a report must end inside its trace or right after its last step")

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
    """All possible places of a first error, trace after trace: T + 1 per trace, the last one meaning "none"."""

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
    """Return uncensored reports from ProcessBench's notation: the 0-based first error, -1 for none."""
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
