"""How a trace's acquisition score becomes its probability of being drawn into a batch.

A batch is drawn one trace at a time. With probability u (the uniform share, 20 % by default) the next trace is the
first undrawn one in a fixed random order, the uniform walk: any undrawn trace is equally likely. Otherwise the policy
draws one of the eligible traces with weight w. The probability q that is recorded with each draw, given the draws
before it:

    w_i = score_i^(1/τ)        q_i = u / n_left + (1 - u) w_i / Σ_{eligible} w

One trace per problem and domain quotas restrict only the policy. Every undrawn trace can be drawn by the uniform walk;
without that, no estimate from these labels would be unbiased. If the policy has no eligible trace left, u is 1.

The policy's draws without replacement are made by adding Gumbel noise to log w once and going down the resulting order.
The exponential race behind this is memoryless, so traces may become ineligible on the way.

Uniform draws by themselves are not a random sample of the pool: the policy takes the errors first, and what remains is
sounder than the pool. With 3 of 8 traces labeled, alpha over the uniform draws was 0.05 too low. The audit slice
(`mask_audit_slice`) corrects this.

W. Kool, H. van Hoof, M. Welling (2019), "Stochastic beams and where to find them", arXiv:1903.06059; A. Kirsch,
S. Farquhar et al. (2023), "Stochastic batch acquisition", arXiv:2106.12059. The start of a random permutation is a
simple random sample: W. G. Cochran (1977), "Sampling techniques", ch. 2; its last draw is left out as in inverse
sampling: J. B. S. Haldane (1945), doi:10.1093/biomet/33.3.222.
"""

import enum
from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints

MIN_UNIFORM_SHARE = 0.01
_LOG_WEIGHT_RANGE = 250.0  # a weight below e^-250 of the largest is never drawn in practice


class DrawArm(enum.StrEnum):
    """The sampling source of a draw."""

    UNIFORM = "uniform"
    POLICY = "policy"


class InvalidDrawRules(ValueError):
    """The rules would leave some traces without a chance."""


@dataclass(frozen=True)
class DrawRules:
    """`domain_quota` is the largest share of a batch that the policy may take from one domain."""

    uniform_share: float = 0.2
    temperature: float = 0.1
    has_one_per_problem: bool = True
    domain_quota: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.uniform_share <= 1 and self.temperature > 0 and 0 < self.domain_quota <= 1):
            raise InvalidDrawRules("the uniform share and the quota must be in (0, 1], the temperature above 0")


@dataclass(frozen=True)
class PoolDraw:
    """`trace` is an index into the pool, `rank` starts at 1, `n_left` counts the traces that could be drawn."""

    rank: int
    trace: int
    arm: DrawArm
    q: float
    score: float
    n_left: int


def draw_in_order(
    *,
    scores: Floats,
    problems: Ints,
    domains: Ints,
    places: Floats,
    size: int,
    rules: DrawRules,
    random: np.random.Generator,
) -> list[PoolDraw]:
    """Draw at most `size` traces from the pool; `places` are their positions in the uniform walk."""
    state = _DrawState(scores, problems, domains, np.argsort(places, kind="stable"), size, rules, random)
    return [state.draw(rank) for rank in range(1, min(size, len(scores)) + 1)]


class _DrawState:
    """The undrawn traces: the weights of the eligible ones, the policy's order and the uniform walk."""

    def __init__(
        self,
        scores: Floats,
        problems: Ints,
        domains: Ints,
        walk: Ints,
        size: int,
        rules: DrawRules,
        random: np.random.Generator,
    ) -> None:
        logs = np.log(np.maximum(scores, 1e-300)) / rules.temperature
        logs = np.maximum(logs - logs.max(initial=-np.inf), -_LOG_WEIGHT_RANGE)
        self._scores, self._problems, self._domains, self._walk = scores, problems, domains, walk
        self._rules, self._random = rules, random
        self._weights = np.exp(logs)
        self._order = np.argsort(-(logs + random.gumbel(size=len(scores))), kind="stable")
        self._next = self._next_uniform = 0
        self._is_left: Bools = np.ones(len(scores), dtype=np.bool_)
        self._n_left = len(scores)
        self._quota = max(1, int(rules.domain_quota * size))
        self._n_by_policy = np.zeros(int(domains.max(initial=0)) + 1, dtype=np.int64)

    def draw(self, rank: int) -> PoolDraw:
        n_left, total = self._n_left, float(self._weights.sum())
        uniform_share = self._rules.uniform_share if total > 0 else 1.0
        is_uniform = self._random.random() < uniform_share
        trace = self._next_on_walk() if is_uniform else self._next_of_policy()
        policy_share = (1 - uniform_share) * float(self._weights[trace]) / total if total > 0 else 0.0
        q = uniform_share / n_left + policy_share
        self._remove(trace, by_policy=not is_uniform)
        arm = DrawArm.UNIFORM if is_uniform else DrawArm.POLICY
        return PoolDraw(rank, trace, arm, q, float(self._scores[trace]), n_left)

    def _next_on_walk(self) -> int:
        while not self._is_left[self._walk[self._next_uniform]]:
            self._next_uniform += 1
        return int(self._walk[self._next_uniform])

    def _next_of_policy(self) -> int:
        while self._weights[self._order[self._next]] <= 0:
            self._next += 1
        return int(self._order[self._next])

    def _remove(self, trace: int, *, by_policy: bool) -> None:
        self._is_left[trace], self._weights[trace] = False, 0.0
        self._n_left -= 1
        if self._rules.has_one_per_problem:
            self._weights[self._problems == self._problems[trace]] = 0.0
        domain = self._domains[trace]
        self._n_by_policy[domain] += by_policy
        if self._n_by_policy[domain] >= self._quota:
            self._weights[self._domains == domain] = 0.0


def mask_audit_slice(*, places: Floats, is_drawn: Bools, is_uniform: Bools) -> Bools:
    """Return the drawn traces of both sources that form a simple random sample of the pool.

    These are the traces on the uniform walk before its furthest draw, including those that the policy drew first. The
    furthest draw itself is left out: the sample would always end with a trace that the policy did not want. An undrawn
    trace before the furthest draw (it joined the pool later) ends the slice until it is drawn.
    """
    furthest = float(places[is_uniform].max(initial=-np.inf))
    first_undrawn = float(places[~is_drawn].min(initial=np.inf))
    end = first_undrawn if is_drawn.all() else min(first_undrawn, furthest)
    return np.asarray(is_drawn & (places < end))
