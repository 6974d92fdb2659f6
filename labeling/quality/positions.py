"""Agreement by the position of a step, from where readings saw the first error. Pure.

At a step those pairs are compared in which both readings had come so far. Most say nothing there, so that agreement is
high at every step; how often both call it wrong beside how often one alone does tells more.
"""

from typing import Any

from labeling.quality.tallied import Meetings

LAST = 30  # steps shown


def of_first_errors(meetings: Meetings) -> list[dict[str, Any]]:
    ends, censored = meetings.ends, meetings.is_censored
    paired = ends[:, 1] >= 0
    ends, censored, lengths = ends[paired], censored[paired], meetings.n_steps[paired]
    rows = []
    for step in range(min(int(lengths.max(initial=0)), LAST)):
        judged = (ends > step) | ((ends == step) & ~censored)  # a report that was cut off here says nothing of it
        met = judged.all(axis=1) & (step < lengths)
        wrong = (ends == step)[met]
        both, one = int(wrong.all(axis=1).sum()), int((wrong.sum(axis=1) == 1).sum())
        n = int(met.sum())
        rows.append({"step": step, "n": n, "agree": (n - one) / n if n else None, "both": both, "one": one})
    return rows
