"""How well a monitor tells traces with a property from traces without it: TPR, TNR and their product, g-mean².

    TPR     share of the traces with the property about which the monitor says yes
    TNR     share of the traces without the property about which it says no
    g-mean² TPR · TNR: 0 for a monitor that always gives the same answer, 1 for a perfect one, .25 for a coin

Each share p has Wilson's interval (l, u) at its effective number of answers p(1-p) / v. The variance v is that of the
sums by problem, so several answers about one problem, such as those of several people, or about both halves of a pair,
do not count as independent. If all answers are the same, the effective number is the number of problems.

The interval of the product puts the two together (MOVER, the method of variance estimates recovery), with the gradient
at the middle of each side, and with the correlation ρ of the two shares over problems:

    a = (p₂+l₂)/2 · (p₁-l₁), b = (p₁+l₁)/2 · (p₂-l₂),  low  = p₁p₂ - √(a² + b² + 2ρab)
    a = (p₂+u₂)/2 · (u₁-p₁), b = (p₁+u₁)/2 · (u₂-p₂),  high = p₁p₂ + √(a² + b² + 2ρab)

G. Y. Zou, A. Donner (2008), doi:10.1002/sim.3095 (MOVER); J. N. K. Rao, A. J. Scott (1992), doi:10.2307/2532311
(effective numbers); M. Guan et al. (2025), "Monitoring monitorability", arXiv:2512.18311 (g-mean²).
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from stats.arrays import Bools, Floats, Ints
from stats.estimates import Interval, Reason
from stats.intervals import MIN_JACKKNIFE_PROBLEMS


@dataclass(frozen=True)
class Share:
    """A share with its interval. Without a case, `value` is None; with fewer than five problems, `interval` is."""

    n: int
    n_problems: int
    value: float | None
    interval: Interval | None


@dataclass(frozen=True)
class MonitorFigures:
    """What a monitor detects. `reason` says why `g_mean2` or its interval is missing."""

    tpr: Share
    tnr: Share
    g_mean2: float | None
    interval: Interval | None
    reason: Reason | None


@dataclass(frozen=True)
class _ProblemErrors:
    """By problem, how much its answers move the share; and the share."""

    value: float
    moves: Floats
    n_problems: int


def measure_monitor(*, problems: Ints, truths: Bools, verdicts: Bools, level: float = 0.95) -> MonitorFigures:
    """Measure a monitor from one row per answer: its problem, whether the trace has the property, and the answer."""
    _, kinds = np.unique(problems, return_inverse=True)
    positive = _sum_by_problem(kinds, truths, verdicts)
    negative = _sum_by_problem(kinds, ~truths, ~verdicts)
    tpr = _make_share(int(truths.sum()), positive, level)
    tnr = _make_share(int((~truths).sum()), negative, level)
    if positive is None or negative is None:
        return MonitorFigures(tpr, tnr, None, None, Reason.NO_CASES)
    product = positive.value * negative.value
    if tpr.interval is None or tnr.interval is None:
        return MonitorFigures(tpr, tnr, product, None, Reason.FEW_PROBLEMS)
    correlation = _correlate(positive.moves, negative.moves)
    low, high = _combine(positive.value, tpr.interval, negative.value, tnr.interval, correlation)
    return MonitorFigures(tpr, tnr, product, Interval(low, high, level, "MOVER by problem"), None)


def _sum_by_problem(kinds: Ints, cases: Bools, right: Bools) -> _ProblemErrors | None:
    n = int(cases.sum())
    if not n:
        return None
    n_cases = np.bincount(kinds[cases], minlength=int(kinds.max()) + 1)
    n_right = np.bincount(kinds[cases & right], minlength=len(n_cases))
    value = int(n_right.sum()) / n
    return _ProblemErrors(value, (n_right - value * n_cases) / n, int((n_cases > 0).sum()))


def _make_share(n: int, errors: _ProblemErrors | None, level: float) -> Share:
    if errors is None:
        return Share(n, 0, None, None)
    if errors.n_problems < MIN_JACKKNIFE_PROBLEMS:
        return Share(n, errors.n_problems, errors.value, None)
    g, p = errors.n_problems, errors.value
    variance = float(errors.moves @ errors.moves) * g / (g - 1)
    is_constant = p in (0.0, 1.0) or variance <= 0
    effective = float(g) if is_constant else p * (1 - p) / variance
    return Share(n, g, p, _wilson(p, effective, level))


def _wilson(p: float, n: float, level: float) -> Interval:
    """Return Wilson's interval for an effective number, which need not be whole."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle, size = p + z * z / (2 * n), 1 + z * z / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = 0.0 if p == 0 else (middle - half) / size
    high = 1.0 if p == 1 else (middle + half) / size
    return Interval(max(low, 0.0), min(high, 1.0), level, "Wilson by problem")


def _correlate(one: Floats, other: Floats) -> float:
    scale = math.sqrt(float(one @ one) * float(other @ other))
    return float(np.clip(one @ other / scale, -1, 1)) if scale > 0 else 0.0


def _combine(p: float, own: Interval, q: float, other: Interval, correlation: float) -> tuple[float, float]:
    def distance(end: float, other_end: float) -> float:
        a, b = abs(p - end) * (q + other_end) / 2, abs(q - other_end) * (p + end) / 2
        return math.sqrt(max(a * a + b * b + 2 * correlation * a * b, 0.0))

    low, high = p * q - distance(own.low, other.low), p * q + distance(own.high, other.high)
    return max(low, 0.0), min(high, 1.0)
