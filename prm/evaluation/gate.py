"""The gate: may a new PRM replace the current one? A paired, length-matched non-inferiority test by problem.

Both PRMs score the same labeled steps of the held-out set. d is the length-matched risk-set AUC of the candidate minus
that of the current PRM, over the same pairs. [low, high] is its 95 % jackknife interval by problem, at least as wide as
±3.69/n for n problems with pairs: a change that no problem shows can still affect that many (rule of three). δ is the
project's margin, 0.05 by default.

    rejected    high < 0: it is worse, or an audit raised a blocking alarm
    accepted    low > -δ: it is not worse by the margin or more. A PRM that is worse by δ passes in at most 2.5 %
    undecided   otherwise, and if nothing can be compared: no evidence is no proof of equality

An undecided candidate never replaces the current PRM by itself; a person can decide. Its result states the power of the
test: the smallest true difference that this held-out set shows with a probability of 80 %,

    (t₀.₉₇₅ + z₀.₈) s,   s = (high - low) / 2 t₀.₉₇₅

and how many problems are missing: with n problems, s is proportional to 1/√n. One number of problems is needed to
accept an equally good candidate with 80 %, another to decide the present d; the larger one counts.

The first PRM of a project may start without an evaluation, since it replaces a random order.

G. Piaggio et al. (2012), "Reporting of noninferiority and equivalence randomized trials", doi:10.1001/jama.2012.87802;
J. A. Hanley, A. Lippman-Hand (1983), "If nothing goes wrong, is everything all right?",
doi:10.1001/jama.1983.03330370053031 (rule of three).
"""

import enum
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from prm.evaluation import step_figures
from prm.evaluation.labeled_steps import LabeledSteps
from stats.arrays import Floats
from stats.estimates import Estimate, Interval, Reason
from stats.intervals import t_quantile

DEFAULT_MARGIN = 0.05
_POWER = NormalDist().inv_cdf(0.8)
_TAIL = 0.025
_RULE_OF_THREE = -math.log(_TAIL)  # 3.69: with none in n, the share is below this / n


class Verdict(enum.StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNDECIDED = "undecided"


class GateReason(enum.StrEnum):
    """The values are stored with generations; `dashboard` maps them to texts."""

    BETTER = "better than the current PRM"
    NOT_WORSE = "not worse than the current PRM by the margin"
    FIRST = "the first PRM"
    FIRST_UNEVALUATED = "the first PRM; the held-out set has too few labels to evaluate it"
    SAME = "the current PRM, evaluated again"
    WORSE = "worse than the current PRM"
    ALARM = "an audit raised a blocking alarm"
    TOO_FEW = "the held-out set is too small to tell whether it is worse"
    NOT_COMPARABLE = "no pair of held-out steps compares it with the current PRM"
    NO_SCORES = "no scores of this PRM were pushed for the held-out traces"

    @property
    def verdict(self) -> Verdict:
        if self in {GateReason.WORSE, GateReason.ALARM}:
            return Verdict.REJECTED
        if self in {GateReason.TOO_FEW, GateReason.NOT_COMPARABLE, GateReason.NO_SCORES}:
            return Verdict.UNDECIDED
        return Verdict.ACCEPTED


@dataclass(frozen=True)
class PRMComparison:
    """Candidate minus current PRM. `detectable` and the interval are empty if the spread is unknown.

    `missing` is the number of further problems until a decision is likely; 0 after a decision.
    """

    margin: float
    n_pairs: int
    n_problems: int
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    detectable: float | None = None
    missing: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_prms(steps: LabeledSteps, current_p_wrong: Floats, *, margin: float) -> PRMComparison:
    """Compare the candidate, whose scores `steps` has, with the current PRM on the same labeled pairs."""
    pairs = step_figures.length_matched_difference(steps, current_p_wrong)
    n = pairs.n_problems
    if pairs.value is None or pairs.interval in (Reason.FEW_PROBLEMS, Reason.RESTS_ON_ONE):
        missing = max(_least_problems(margin) - n, 1)
        return PRMComparison(margin, pairs.n_pairs, n, pairs.value, missing=missing)
    if np.array_equal(steps.p_wrong, current_p_wrong):  # the same PRM again
        return PRMComparison(margin, pairs.n_pairs, n, 0.0, 0.0, 0.0, 0.0)
    d, floor = pairs.value, _RULE_OF_THREE / n
    ends = (pairs.interval.low, pairs.interval.high) if isinstance(pairs.interval, Interval) else (d, d)
    low, high = min(ends[0], d - floor), max(ends[1], d + floor)
    t = t_quantile(p=1 - _TAIL, df=n - 1)
    error = (high - low) / (2 * t)
    is_decided = high < 0 or low > -margin
    missing = 0 if is_decided else _missing_problems(d, error, margin=margin, n=n)
    return PRMComparison(margin, pairs.n_pairs, n, d, low, high, (t + _POWER) * error, missing)


def _least_problems(margin: float) -> int:
    """Return the number of problems below which an equally good PRM is never accepted."""
    return math.floor(_RULE_OF_THREE / margin) + 1


def _missing_problems(d: float, error: float, *, margin: float, n: int) -> int:
    z = NormalDist().inv_cdf(1 - _TAIL)
    for_equal = n * ((z + _POWER) * error / margin) ** 2
    for_present = n * (z * error / max(d + margin, -d)) ** 2
    return max(math.ceil(max(for_equal, for_present, _least_problems(margin))) - n, 1)


def decide_gate(
    *,
    candidate: Estimate,
    comparison: PRMComparison | None,
    alarms: Collection[str],
    advisory: Collection[str] = (),
    is_current: bool = False,
    has_scores: bool = True,
) -> GateReason:
    """Decide by the alarms that are not advisory, and by the comparison with the current PRM if there is one."""
    if is_current:
        return GateReason.SAME
    if not set(alarms) <= set(advisory):
        return GateReason.ALARM
    if not has_scores:
        return GateReason.NO_SCORES
    if comparison is None:
        is_evaluated = candidate.interval is not None or candidate.interval_reason is Reason.NO_SPREAD
        return GateReason.FIRST if is_evaluated else GateReason.FIRST_UNEVALUATED
    return _decide_by_comparison(comparison)


def _decide_by_comparison(comparison: PRMComparison) -> GateReason:
    if comparison.difference is None:
        return GateReason.NOT_COMPARABLE
    if comparison.low is None or comparison.high is None:
        return GateReason.TOO_FEW
    if comparison.high < 0:
        return GateReason.WORSE
    if comparison.low > -comparison.margin:
        return GateReason.BETTER if comparison.low > 0 else GateReason.NOT_WORSE
    return GateReason.TOO_FEW
