"""How a trace's acquisition score becomes its probability of being drawn, and what the draws say about the pool.

A batch is drawn one trace at a time. With probability u (the uniform share, 20 % by default) the next trace is the
first undrawn one in a fixed random order, the uniform walk: any undrawn trace is equally likely. Otherwise the policy
draws one of the eligible traces with weight w. The probability q that is recorded with each draw, given the draws
before it:

    w_i = score_i^(1/τ)        q_i = u / n_left + (1 - u) w_i / Σ_{eligible} w

The default acquisition function adds two things to the policy's part of q. Traces with and without a known outcome are
strata s, from which the policy draws in proportion to their sizes π_s, as long as they have eligible traces. And half
of its draws are spread out: their weights contain d_i, the distance in feature space to the nearest trace of the batch.

    v_i = (score_i d_i)^(1/τ)  q_i = u / n_left + (1 - u) π_s (w_i / Σ_s w + v_i / Σ_s v) / 2, sums over the eligible

One trace per problem and domain quotas restrict only the policy. Every undrawn trace can be drawn by the uniform walk;
without that, no estimate from these labels would be unbiased. If the policy has no eligible trace left, u is 1.

Each draw is made from exactly the probabilities that are recorded, so q is true by construction.

Uniform draws by themselves are not a random sample of the pool: the policy takes the errors first, and what remains is
sounder than the pool. With 3 of 8 traces labeled, alpha over the uniform draws was 0.05 too low. The audit slice
(`mask_audit_slice`) corrects this.

From actively selected labels, `estimate_pool_mean` estimates means of the whole pool: levelled unbiased risk, plain and
self-normalized. q must be the probability at the time of the draw: a fixed softmax in its place biases the plain form
by several points. With N traces in the pool, M draws, L_m the loss of draw m:

    v_m = 1 + (N - M)/(N - m) (1/((N - m + 1) q_m) - 1),   plain Σ v_m L_m / M,   self-normalized Σ v_m L_m / Σ v_m

A. Kirsch, S. Farquhar et al. (2023), "Stochastic batch acquisition", arXiv:2106.12059 (weights); D. Arthur,
S. Vassilvitskii (2007), "k-means++", SODA (draws by the distance to those before). The start of a random permutation is
a simple random sample: W. G. Cochran (1977), "Sampling techniques", ch. 2; its last draw is left out as in inverse
sampling: J. B. S. Haldane (1945), doi:10.1093/biomet/33.3.222. S. Farquhar, Y. Gal, T. Rainforth (2021), "On
statistical bias in active learning", arXiv:2101.11665; J. Kossen, S. Farquhar, Y. Gal, T. Rainforth (2021), "Active
testing", arXiv:2103.05331.
"""

import enum
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints, divide

MIN_UNIFORM_SHARE = 0.01
SPREAD_SHARE = 0.5  # of the policy's draws, if there are features
_MIN_TOTAL = 1e-200
_LOG_WEIGHT_RANGE = 250.0  # a weight below e^-250 of the largest is never drawn in practice


class DrawArm(enum.StrEnum):
    """The sampling source of a draw."""

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
            raise ValueError("the uniform share and the quota must be in (0, 1], the temperature above 0")


@dataclass(frozen=True)
class PoolDraw:
    """`trace` is an index into the pool, `rank` starts at 1, `n_left` counts the traces that could be drawn."""

    rank: int
    trace: int
    arm: DrawArm
    q: float
    score: float
    n_left: int


class _Policy:
    """The policy's weights, given the draws so far. Rows are sorted by stratum, so that each is one slice."""

    def __init__(self, scores: Floats, temperature: float, strata: Ints, features: Floats | None) -> None:
        order = np.argsort(strata, kind="stable")
        self._traces, self._row = order, np.argsort(order, kind="stable")
        ends = np.cumsum(np.bincount(strata))
        self._slices = [slice(int(end - size), int(end)) for end, size in zip(ends, np.bincount(strata), strict=True)]
        logs = np.log(np.maximum(scores[order], 1e-300)) / temperature
        for rows in self._slices:
            logs[rows] -= logs[rows].max(initial=-np.inf)
        self._weights = np.exp(np.maximum(logs, -_LOG_WEIGHT_RANGE))
        self._features, self._power = (
            None if features is None else np.ascontiguousarray(features[order].T),
            0.5 / temperature,
        )
        self._farness: Floats | None = None  # d^(1/τ); none before the first draw
        self._distances = np.full(len(scores), np.inf)  # squared, relative to the largest possible one
        self._norms = np.zeros(0) if features is None else (features[order] ** 2).sum(axis=1)

    def exclude(self, traces: Ints) -> None:
        self._weights[self._row[traces]] = 0.0

    def update(self) -> bool:
        """Add up the weights for the next draw. Return whether any trace is eligible."""
        self._kinds = [(self._weights, 1.0)]
        if self._farness is not None:
            self._kinds = [(self._weights, 1 - SPREAD_SHARE), (self._weights * self._farness, SPREAD_SHARE)]
        self._totals = [[float(weights[rows].sum()) for weights, _ in self._kinds] for rows in self._slices]
        sizes = [rows.stop - rows.start if totals[0] > 0 else 0 for rows, totals in self._pairs()]
        self._shares = [size / max(sum(sizes), 1) for size in sizes]
        return any(sizes)

    def _pairs(self) -> list[tuple[slice, list[float]]]:
        return list(zip(self._slices, self._totals, strict=True))

    def _kind_shares(self, totals: list[float]) -> list[float]:
        """Return how the draws of a stratum are divided; without weights to spread out, all are plain."""
        if len(totals) == 1 or totals[1] <= _MIN_TOTAL:
            return [1.0, 0.0][: len(totals)]
        return [share for _, share in self._kinds]

    def probability(self, trace: int) -> float:
        """Return P(drawn next by the policy)."""
        row = int(self._row[trace])
        n = next(n for n, rows in enumerate(self._slices) if rows.start <= row < rows.stop)
        totals = self._totals[n]
        parts = zip(self._kinds, self._kind_shares(totals), totals, strict=True)
        inside = sum(share * float(weights[row]) / total for (weights, _), share, total in parts if share and total)
        return self._shares[n] * inside

    def draw(self, random: np.random.Generator) -> int:
        n = _choose(self._shares, random)
        rows = self._slices[n]
        weights, _ = self._kinds[_choose(self._kind_shares(self._totals[n]), random)]
        ends = np.cumsum(weights[rows])
        index = int(np.searchsorted(ends, random.random() * ends[-1], side="right"))
        if index == len(ends):  # rounding reached the very end
            index = int(np.flatnonzero(weights[rows])[-1])
        return int(self._traces[rows.start + index])

    def record_draw(self, trace: int) -> None:
        """Move away from the drawn trace in feature space."""
        if self._features is None:
            return
        row, largest = int(self._row[trace]), max(4 * float(self._norms.max(initial=0.0)), 1e-12)
        # Not by BLAS: its threads wait for each other on a busy machine, at ten times the cost.
        products = np.einsum("ji,j->i", self._features, self._features[:, row])
        squared = self._norms + self._norms[row] - 2 * products
        closer = np.flatnonzero(squared < largest * self._distances)
        self._distances[closer] = np.maximum(squared[closer], 0.0) / largest
        if self._farness is None:
            self._farness = np.zeros(len(squared))
        self._farness[closer] = self._distances[closer] ** self._power


def _choose(shares: Sequence[float], random: np.random.Generator) -> int:
    """Choose an index by its share; the shares add up to 1."""
    left = random.random()
    for n, share in enumerate(shares):
        left -= share
        if left < 0 and share:
            return n
    return max(n for n, share in enumerate(shares) if share)


def draw_in_order(
    *,
    scores: Floats,
    problems: Ints,
    domains: Ints,
    places: Floats,
    size: int,
    rules: DrawRules,
    random: np.random.Generator,
    strata: Ints | None = None,
    features: Floats | None = None,
) -> list[PoolDraw]:
    """Draw at most `size` traces from the pool; `places` are their positions in the uniform walk.

    With `features`, half of the policy's draws are spread out.
    """
    n = len(scores)
    policy = _Policy(scores, rules.temperature, np.zeros(n, dtype=np.int64) if strata is None else strata, features)
    is_left, by_problem = np.ones(n, dtype=np.bool_), np.argsort(problems, kind="stable")
    sorted_problems = problems[by_problem]
    walk = iter(np.argsort(places, kind="stable").tolist())
    quota, n_by_policy = max(1, int(rules.domain_quota * size)), Counter[int]()
    drawn = []
    for rank in range(1, min(size, n) + 1):
        n_left = n - rank + 1
        uniform_share = rules.uniform_share if policy.update() else 1.0
        if random.random() < uniform_share:
            arm, trace = DrawArm.UNIFORM, next(each for each in walk if is_left[each])
        else:
            arm, trace = DrawArm.POLICY, policy.draw(random)
        policy_share = (1 - uniform_share) * policy.probability(trace) if uniform_share < 1 else 0.0
        drawn.append(PoolDraw(rank, trace, arm, uniform_share / n_left + policy_share, float(scores[trace]), n_left))
        is_left[trace] = False
        policy.exclude(np.array([trace]))
        policy.record_draw(trace)
        if rules.has_one_per_problem:
            first, end = np.searchsorted(sorted_problems, [problems[trace], problems[trace] + 1])
            policy.exclude(by_problem[first:end])
        n_by_policy[int(domains[trace])] += arm is DrawArm.POLICY
        if n_by_policy[int(domains[trace])] >= quota:
            policy.exclude(np.flatnonzero(domains == domains[trace]))
    return drawn


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


# --- estimates of the pool --------------------------------------------------------------------------------------------


def lure_weights(*, q: Floats, pool_size: int) -> Floats:
    """Return v of every draw, in the order of the draws."""
    n, draws = pool_size, len(q)
    if draws > n or (draws and not (q.min() > 0 and q.max() <= 1 + 1e-12)):
        raise ValueError(f"{draws} draws from {n} traces: every probability must be in (0, 1]")
    m = np.arange(1, draws + 1)
    n_left = np.maximum(n - m, 1)  # after the last draw of a whole pool nothing is left, and its weight is 1
    return np.asarray(1.0 + (n - draws) / n_left * (1.0 / ((n - m + 1) * q) - 1.0))


def estimate_pool_mean(*, losses: Floats, q: Floats, pool_size: int) -> tuple[float, float]:
    """Estimate the pool's mean loss, plain and self-normalized; NaN without draws or if the weights add up to zero."""
    v = lure_weights(q=q, pool_size=pool_size)
    plain, normalized = divide((v * losses).sum(), np.array([len(v), v.sum()]))
    return float(plain), float(normalized)


def estimate_slice_mean(*, losses: Floats, is_in_slice: Floats, q: Floats, pool_size: int) -> float:
    """Estimate the mean loss of a part of the pool of unknown size, self-normalized within the part."""
    v = lure_weights(q=q, pool_size=pool_size) * is_in_slice
    return float(divide((v * losses).sum(), v.sum()))
