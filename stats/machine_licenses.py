"""Decide in which strata a machine may settle traces alone, so that its labels there keep a promised precision.

A stratum is licensed if a lower bound of its precision reaches the promise:

    precision ≥ P(same as people) - P(same as people, and both wrong)
    bound     = lower bound of the first, on traces that people labeled blind
                - upper bound of the second, on gold of the same stratum

The second term is the blind spot that people and machine share: agreement with people alone overstates precision by it.
Gold that no one has answered counts as shared if the machine is wrong, so missing answers never help. Gold is richer in
errors than the pool, which makes the second bound cautious.

Each bound is an exact binomial one (Clopper-Pearson) with the *effective* number of cases, which is smaller than the
number of traces where a problem has several of them or weights differ; at 0 % or 100 % it is the number of problems.
The two margins are independent, so they are combined as the root of the sum of their squares. The strata are tested
step by step: each at error rate α divided by the strata that are left. So all licensed strata together keep their
promise in at least 1 - α of all projects.

E. L. Korn, B. I. Graubard (1998), "Confidence intervals for proportions with small expected number of positive counts
estimated from survey data", Survey Methodology 24, 193-201; C. J. Clopper, E. S. Pearson (1934),
doi:10.1093/biomet/26.4.404; combined margins: G. Y. Zou, A. Donner (2008), doi:10.1002/sim.3095; steps: S. Holm (1979),
"A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 65-70.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from stats.arrays import Bools, Floats, Ints
from stats.estimates import Reason
from stats.intervals import beta_quantile

_Key = TypeVar("_Key", bound=Hashable)

ERROR_RATE = 0.05
MIN_PEOPLE_PROBLEMS, MIN_GOLD_PROBLEMS = 30, 10


@dataclass(frozen=True)
class StratumEvidence:
    """Traces of one stratum that the machine judged.

    `agrees` says for each trace labeled by people whether the machine has their first error; `weights` are inverse
    probabilities of being drawn. `is_shared` says for each gold trace whether machine and people are wrong alike.
    """

    agrees: Bools
    problems: Ints
    weights: Floats
    is_shared: Bools
    gold_problems: Ints


@dataclass(frozen=True)
class StratumBound:
    """`lower_bound` is None where there is too little evidence; `reason` then says why."""

    n_people: int
    n_gold: int
    agreement: float | None
    shared: float | None
    lower_bound: float | None
    keeps_promise: bool
    reason: Reason | None = None


def bound_strata(
    strata: Mapping[_Key, StratumEvidence], *, promised: float, error_rate: float = ERROR_RATE
) -> dict[_Key, StratumBound]:
    """Bound the precision of each stratum. Strata must be fixed before their labels are known."""
    bounds = {key: _describe_evidence(evidence) for key, evidence in strata.items()}
    left = [key for key, bound in bounds.items() if bound.reason is None]
    while left:
        tail = error_rate / len(left)
        bounds |= {key: _bound_stratum(bounds[key], strata[key], promised, tail) for key in left}
        remaining = [key for key in left if not bounds[key].keeps_promise]
        if len(remaining) == len(left):
            break
        left = remaining
    return bounds


def _describe_evidence(evidence: StratumEvidence) -> StratumBound:
    reason = None
    if len(np.unique(evidence.problems)) < MIN_PEOPLE_PROBLEMS:
        reason = Reason.FEW_BLIND
    elif len(np.unique(evidence.gold_problems)) < MIN_GOLD_PROBLEMS:
        reason = Reason.FEW_GOLD
    n_people, n_gold = len(evidence.agrees), len(evidence.is_shared)
    agreement = float(np.average(evidence.agrees, weights=evidence.weights)) if n_people else None
    shared = float(evidence.is_shared.mean()) if n_gold else None
    return StratumBound(n_people, n_gold, agreement, shared, None, keeps_promise=False, reason=reason)


def _bound_stratum(known: StratumBound, evidence: StratumEvidence, promised: float, tail: float) -> StratumBound:
    agreement, shared = known.agreement or 0.0, known.shared or 0.0
    low = bound_share(evidence.agrees, evidence.problems, evidence.weights, tail=tail, is_upper=False)
    ones = np.ones(len(evidence.is_shared))
    high = bound_share(evidence.is_shared, evidence.gold_problems, ones, tail=tail, is_upper=True)
    bound = max(agreement - shared - math.hypot(agreement - low, high - shared), 0.0)
    is_kept = bound >= promised
    reason = None if is_kept else Reason.BELOW_PROMISE
    return replace(known, lower_bound=bound, keeps_promise=is_kept, reason=reason)


def bound_share(hits: Bools, problems: Ints, weights: Floats, *, tail: float, is_upper: bool) -> float:
    """Return the one-sided bound of a weighted share with cases clustered by problem."""
    share, n = float(np.average(hits, weights=weights)), count_effective_cases(hits, problems, weights)
    x = share * n
    if is_upper:
        return 1.0 if share >= 1 else beta_quantile(a=x + 1, b=n - x, p=1 - tail)
    return 0.0 if share <= 0 else beta_quantile(a=x, b=n - x + 1, p=tail)


def count_effective_cases(hits: Bools, problems: Ints, weights: Floats) -> float:
    """Return how many independent, equally weighted cases would be as informative, at most the number of cases."""
    _, problem = np.unique(problems, return_inverse=True)
    n_problems = int(problem.max()) + 1
    share = float(np.average(hits, weights=weights))
    by_weight = float(weights.sum() ** 2 / (weights**2).sum())
    if not 0 < share < 1:
        return min(float(n_problems), by_weight)
    influence = np.bincount(problem, weights=weights * (hits - share)) / weights.sum()
    variance = n_problems / max(n_problems - 1, 1) * float(influence @ influence)
    return min(share * (1 - share) / variance, float(len(hits)), by_weight)
