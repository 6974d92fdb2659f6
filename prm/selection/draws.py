"""A batch drawn in order, every draw with its probability given the draws before it.

At each rank the uniform arm (share u, 20 % by default) takes the next trace left of a fixed random order (`audit` says
why), which is any of them with the same chance; else the policy takes one by

    w_i = score_i^(1/τ) among the eligible:   q = u / n_left + (1 - u) w_i / Σ_{eligible} w

Adding Gumbel noise to log w and going down the order is drawing without replacement by w (the race of exponential
clocks: what has not rung yet is as good as new), and what only ever drops out keeps that true. So one problem a batch
and quotas of domains bind the policy alone, and the uniform arm always has full support: without that no estimate from
these labels is unbiased. Where the policy has nothing left the uniform arm takes all.

W. Kool, H. van Hoof, M. Welling (2019), "Stochastic beams and where to find them", arXiv:1903.06059; A. Kirsch,
S. Farquhar et al. (2023), "Stochastic batch acquisition", arXiv:2106.12059.
"""

import enum
from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints

_WIDEST = 250.0  # of the log-weights: what lies further below the best than e^-250 is as good as never drawn


class DrawArm(enum.StrEnum):
    UNIFORM = "uniform"
    POLICY = "policy"


@dataclass(frozen=True)
class DrawRules:
    """`domain_quota` is the largest share of a batch that the policy may take from one domain."""

    uniform_share: float = 0.2
    temperature: float = 0.1
    has_one_per_problem: bool = True
    domain_quota: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.uniform_share <= 1 and self.temperature > 0 and 0 < self.domain_quota <= 1):
            raise ValueError("a draw needs a uniform share in (0, 1], a temperature above 0, a quota in (0, 1]")


@dataclass(frozen=True)
class PoolDraw:
    """`trace` is its place in the pool, `rank` counts from 1, `n_left` the traces it was drawn from."""

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
    """At most `size` draws, fewer where the pool is smaller; `places` is the uniform arm's order, as `splits.place`."""
    state = _Race(scores, problems, domains, np.argsort(places, kind="stable"), size, rules, random)
    return [state.draw(rank) for rank in range(1, min(size, len(scores)) + 1)]


class _Race:
    """What is left to draw: weights of the eligible, the order in which the policy's clocks ring, the uniform walk."""

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
        logs = np.maximum(logs - logs.max(initial=-np.inf), -_WIDEST)
        self._scores, self._problems, self._domains, self._walk = scores, problems, domains, walk
        self._rules, self._random = rules, random
        self._weights = np.exp(logs)
        self._order = np.argsort(-(logs + random.gumbel(size=len(scores))), kind="stable")
        self._next = self._next_uniform = 0
        self._is_left: Bools = np.ones(len(scores), dtype=np.bool_)
        self._n_left = len(scores)
        self._quota = max(1, int(rules.domain_quota * size))
        self._of_policy = np.zeros(int(domains.max(initial=0)) + 1, dtype=np.int64)

    def draw(self, rank: int) -> PoolDraw:
        left, total = self._n_left, float(self._weights.sum())
        uniform = self._rules.uniform_share if total > 0 else 1.0
        is_uniform = self._random.random() < uniform
        trace = self._next_on_walk() if is_uniform else self._first_to_ring()
        by_policy = (1 - uniform) * float(self._weights[trace]) / total if total > 0 else 0.0
        self._take(trace, is_policy=not is_uniform)
        arm = DrawArm.UNIFORM if is_uniform else DrawArm.POLICY
        return PoolDraw(rank, trace, arm, uniform / left + by_policy, float(self._scores[trace]), left)

    def _next_on_walk(self) -> int:
        while not self._is_left[self._walk[self._next_uniform]]:
            self._next_uniform += 1
        return int(self._walk[self._next_uniform])

    def _first_to_ring(self) -> int:
        while self._weights[self._order[self._next]] <= 0:
            self._next += 1
        return int(self._order[self._next])

    def _take(self, trace: int, *, is_policy: bool) -> None:
        self._is_left[trace], self._weights[trace] = False, 0.0
        self._n_left -= 1
        if self._rules.has_one_per_problem:
            self._weights[self._problems == self._problems[trace]] = 0.0
        domain = self._domains[trace]
        self._of_policy[domain] += is_policy
        if self._of_policy[domain] >= self._quota:
            self._weights[self._domains == domain] = 0.0
