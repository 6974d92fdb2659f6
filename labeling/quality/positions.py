"""Agreement by the position of a step, from where readings saw the first error. Pure.

At a step those pairs are compared in which both readings had come so far. Most say nothing there, so that agreement is
high at every step; how often both call it wrong beside how often one alone does tells more. The interval is by problem:
traces of one problem are hard at the same steps.
"""

from typing import Any

import numpy as np

from labeling.agreement import shares
from labeling.agreement.result import Estimate
from labeling.quality.tallied import Meetings

LAST = 30  # steps shown


def of_first_errors(meetings: Meetings) -> list[dict[str, Any]]:
    ends, censored = meetings.ends, meetings.is_censored
    paired = ends[:, 1] >= 0
    ends, censored, lengths = ends[paired], censored[paired], meetings.n_steps[paired]
    problems = np.unique(meetings.columns["problem"][paired], return_inverse=True)[1]
    rows = []
    for step in range(min(int(lengths.max(initial=0)), LAST)):
        judged = (ends > step) | ((ends == step) & ~censored)  # a report that was cut off here says nothing of it
        met = judged.all(axis=1) & (step < lengths)
        wrong = (ends == step)[met]
        both, one = int(wrong.all(axis=1).sum()), int((wrong.sum(axis=1) == 1).sum())
        same = wrong.sum(axis=1) != 1
        cases = np.bincount(problems[met])
        told = shares.of_counts(np.bincount(problems[met], weights=same).astype(np.int64), cases.astype(np.int64))
        rows.append({"step": step, "agree": told.value, "both": both, "one": one, **_around(told)})
    return rows


def _around(told: Estimate) -> dict[str, Any]:
    interval = told.interval
    return {
        "n": told.counts.units,
        "n_problems": told.counts.problems,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "interval_reason": told.interval_reason,
    }
