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
_BLOCK = 128
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
    """The policy's weights, given the draws so far.

    Traces are stored in blocks of neighbors in feature space, each block within one stratum. A draw changes the sums of
    few blocks, and affects only near points: a block whose box is further from the draw than all of its points are from
    earlier draws is skipped. So a draw does not read the whole pool.
    """

    def __init__(self, scores: Floats, temperature: float, strata: Ints, features: Floats | None) -> None:
        blocks = [_order_in_blocks(np.flatnonzero(strata == stratum), features) for stratum in np.unique(strata)]
        self._traces = np.concatenate(blocks)  # one row per block, -1 for places without a trace
        ends = np.cumsum([len(each) for each in blocks]).tolist()
        self._slices = [slice(end - len(each), end) for end, each in zip(ends, blocks, strict=True)]
        self._sizes = [int((each >= 0).sum()) for each in blocks]
        is_trace = self._traces >= 0
        self._place = np.zeros(len(scores), dtype=np.int64)
        self._place[self._traces[is_trace]] = np.flatnonzero(is_trace)
        logs = np.where(is_trace, np.log(np.maximum(scores[self._traces], 1e-300)) / temperature, -np.inf)
        for rows in self._slices:
            logs[rows] -= logs[rows].max()
        plain = np.where(is_trace, np.exp(np.maximum(logs, -_LOG_WEIGHT_RANGE)), 0.0)
        # The weights by score, and the weights of draws that are spread out, which begin after the first draw.
        self._weights = np.stack([plain, np.zeros_like(plain)])
        self._sums = self._weights.sum(axis=2)
        self._power, self._points = 0.5 / temperature, None
        if features is not None:
            self._points = np.where(is_trace[..., None], features[self._traces], np.nan).transpose(0, 2, 1).copy()
            self._lowest, self._highest = np.nanmin(self._points, axis=2), np.nanmax(self._points, axis=2)
            self._largest = max(4 * float((features**2).sum(axis=1).max()), 1e-12)
            self._distances = np.where(is_trace, np.inf, 0.0)  # squared, relative to the largest possible one
            self._furthest = self._distances.max(axis=1)
        self._has_spread = False

    def exclude(self, traces: Ints) -> None:
        blocks, columns = np.divmod(self._place[traces], _BLOCK)
        self._weights[:, blocks, columns] = 0.0
        self._sums[:, blocks] = self._weights[:, blocks].sum(axis=2)
        if self._points is not None:
            self._distances[blocks, columns] = 0.0  # no later draw can be closer, so the weight stays zero
            self._furthest[blocks] = self._distances[blocks].max(axis=1)

    def update(self) -> bool:
        """Add up the weights for the next draw. Return whether any trace is eligible."""
        self._totals = [self._sums[:, rows].sum(axis=1).tolist() for rows in self._slices]
        sizes = [size if totals[0] > 0 else 0 for size, totals in zip(self._sizes, self._totals, strict=True)]
        self._shares = [size / max(sum(sizes), 1) for size in sizes]
        return any(sizes)

    def _kind_shares(self, totals: Sequence[float]) -> tuple[float, float]:
        """Return how the draws of a stratum are divided; without weights to spread out, all are plain."""
        if not self._has_spread or totals[1] <= _MIN_TOTAL:
            return 1.0, 0.0
        return 1 - SPREAD_SHARE, SPREAD_SHARE

    def probability(self, trace: int) -> float:
        """Return P(drawn next by the policy)."""
        block, column = divmod(int(self._place[trace]), _BLOCK)
        n = next(n for n, rows in enumerate(self._slices) if rows.start <= block < rows.stop)
        totals = self._totals[n]
        parts = zip(self._weights[:, block, column].tolist(), self._kind_shares(totals), totals, strict=True)
        inside: float = sum(share * weight / total for weight, share, total in parts if share and total)
        return self._shares[n] * inside

    def draw(self, random: np.random.Generator) -> int:
        n = _choose(self._shares, random)
        kind = _choose(self._kind_shares(self._totals[n]), random)
        rows = self._slices[n]
        block = rows.start + _choose_by_weight(self._sums[kind, rows], random)
        return int(self._traces[block, _choose_by_weight(self._weights[kind, block], random)])

    def record_draw(self, trace: int) -> None:
        """Move away from the drawn trace in feature space."""
        if self._points is None:
            return
        self._has_spread = True
        block, column = divmod(int(self._place[trace]), _BLOCK)
        point = self._points[block, :, column]
        outside = np.maximum(self._lowest - point, 0.0) + np.maximum(point - self._highest, 0.0)
        near = np.flatnonzero((outside**2).sum(axis=1) < self._largest * self._furthest)
        squared = ((self._points[near] - point[:, None]) ** 2).sum(axis=1) / self._largest
        distances = np.fmin(self._distances[near], squared)  # places without a trace keep theirs
        self._distances[near], self._furthest[near] = distances, distances.max(axis=1)
        spread = self._weights[0, near] * distances**self._power
        self._weights[1, near], self._sums[1, near] = spread, spread.sum(axis=1)


def _order_in_blocks(traces: Ints, features: Floats | None) -> Ints:
    """Return the traces in rows of one block each, the last one filled up with -1. Neighbors share a block."""
    parts, ordered = [traces], []
    while parts:
        part = parts.pop()
        if features is None or len(part) <= _BLOCK:
            ordered.append(part)
            continue
        widest = int(np.ptp(features[part], axis=0).argmax())
        half = _BLOCK * (-(-len(part) // _BLOCK) // 2)
        part = part[np.argpartition(features[part, widest], half)]
        parts += [part[half:], part[:half]]
    rows = np.full((-(-len(traces) // _BLOCK), _BLOCK), -1, dtype=np.int64)
    rows.ravel()[: len(traces)] = np.concatenate(ordered)
    return rows


def _choose_by_weight(weights: Floats, random: np.random.Generator) -> int:
    ends = np.cumsum(weights)
    index = int(np.searchsorted(ends, random.random() * ends[-1], side="right"))
    return index if index < len(ends) else int(np.flatnonzero(weights)[-1])  # rounding reached the very end


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
        policy.record_draw(trace)
        policy.exclude(np.array([trace]))
        if rules.has_one_per_problem:
            first, end = np.searchsorted(sorted_problems, [problems[trace], problems[trace] + 1])
            policy.exclude(by_problem[first:end])
        if arm is DrawArm.POLICY:
            n_by_policy[int(domains[trace])] += 1
            if n_by_policy[int(domains[trace])] == quota:
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
