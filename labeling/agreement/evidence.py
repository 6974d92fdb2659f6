"""What a first-error report says for each place where the first error could be: counts of five kinds of event.

A rater raises a false alarm with f at a step before the first error, detects it with d, and having missed it stops
late with g at a later step. A report that ended at s says, for a first error at E (T = none):

    s < E   s steps passed before, one false alarm
    s = E   E passed before, one detection                         (E = none: T passed before, nothing more)
    s > E   E passed before, one miss, s - 1 - E passed late, one late stop (not when s = none)

Censored after s steps: s ≤ E: s passed before;  s > E: E passed before, one miss, s - 1 - E passed late.
The counts never change while the rates are fitted, so each round of EM is sums of them.
"""

from dataclasses import dataclass

import numpy as np

from labeling.agreement.arrays import Floats, Ints
from labeling.agreement.reports import Places, Reports

EVENTS = ("false alarm", "passed before", "detection", "miss", "late stop", "passed late")


@dataclass(frozen=True)
class Evidence:
    """One row per (report, place of its trace): the place, the rater, the counts in the order of EVENTS."""

    places: Ints
    raters: Ints
    counts: Floats


def of_reports(reports: Reports, there: Places) -> Evidence:
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
    return Evidence(place, reports.raters[report], np.stack(counts, axis=1).astype(np.float64))
