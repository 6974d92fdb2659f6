"""Which consensus may be accepted without a person looking: a threshold that keeps its promise.

Gold traces are ranked by confidence. Going down from the most confident quarter (at least fifty), each threshold must
have a lower 90 % Clopper–Pearson bound of its accuracy that is at least the promise; the first that fails ends the walk
and the last that passed is taken. The order is fixed before anything is known of right or wrong, so looking at many
thresholds costs nothing; a plain "accuracy of at least .90 on gold" delivered .75–.83.

A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei (2021), "Learn then test", arXiv:2110.01052 (fixed
sequence testing); C. J. Clopper, E. S. Pearson (1934), doi:10.1093/biomet/26.4.404.
"""

from dataclasses import dataclass

import numpy as np

from labeling.agreement.arrays import Bools, Floats
from labeling.agreement.proportions import clopper_pearson
from labeling.agreement.result import Reason

FIRST_LOOK = 50  # gold traces
_STEPS = 20


@dataclass(frozen=True)
class Acceptance:
    """Accept at this confidence and above; no threshold, and why, where no promise can be kept."""

    threshold: float | None
    n_gold: int
    n_accepted: int
    lower_bound: float | None
    reason: Reason | None = None


def threshold(*, confidences: Floats, is_right: Bools, promised: float = 0.9, level: float = 0.9) -> Acceptance:
    if len(confidences) < FIRST_LOOK:
        return Acceptance(None, len(confidences), 0, None, Reason.FEW_GOLD)
    order = np.argsort(-confidences, kind="stable")
    ranked, right = confidences[order], np.cumsum(is_right[order])
    kept: tuple[int, float] | None = None
    for look in np.unique(np.linspace(max(FIRST_LOOK, len(ranked) // 4), len(ranked), _STEPS).astype(int)):
        n = int(np.searchsorted(-ranked, -ranked[look - 1], side="right"))  # equal confidence goes together
        bound = clopper_pearson(right=int(right[n - 1]), n=n, level=2 * level - 1).low  # one-sided
        if bound < promised:
            break
        kept = (n, bound)
    if kept is None:
        return Acceptance(None, len(ranked), 0, None, Reason.BELOW_PROMISE)
    return Acceptance(float(ranked[kept[0] - 1]), len(ranked), kept[0], kept[1])
