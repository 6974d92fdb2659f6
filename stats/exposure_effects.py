"""The effect of seeing a machine's labels, from arms that were drawn at random: estimates, power, and a test for harm.

Each effect is the exposed value minus the blind one: shares with Newcombe's interval, times as a ratio of geometric
means with Welch's interval. The power says how probable it was that the data show an effect of a given size.

Harm is anchoring: on gold where the machine is wrong, exposed raters give its answer more often than blind ones. The
test is Fisher's exact one with the mid-p value, which holds whatever traces and raters differ in, because the arms are
drawn for each of them. It looks at fixed numbers of decisions per arm (the harmonic mean of both arms) and spends 95 %
of its error rate like O'Brien-Fleming until the exposed arm has `HORIZON` decisions, the rest after that, in proportion
to 1 - horizon/n; of `alpha` itself, `_SPENT`. So over any time at most `alpha` of harmless projects stop. Two exposed
arms share `alpha` equally.

With 111 exposed decisions, it finds an effect of 15 points at 80 % power up to a blind rate of .20 if the blind arm has
twice as many, also with two exposed arms; with as many blind ones and one exposed arm, up to .15. At .20 no unbiased
test of 111 decisions in each arm has a power above .81. Higher rates need more: `plan_sample_size`.

R. G. Newcombe (1998), doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I (method 10); B. L. Welch
(1947), doi:10.1093/biomet/34.1-2.28; power: J. L. Fleiss, B. Levin, M. C. Paik (2003), "Statistical methods for rates
and proportions", chapter 4; mid-p: H. O. Lancaster (1961), doi:10.2307/2282247.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from stats.alpha_spending import compute_boundaries, spend_like_obrien_fleming
from stats.arrays import Bools, Floats, Ints
from stats.estimates import Interval
from stats.intervals import difference_interval, t_quantile, wilson_interval

ALPHA, HORIZON = 0.05, 111
EFFECT = 0.15  # the smallest effect that must be found
POWER = 0.8
_SPENT = 0.94  # of alpha: mid-p values of few hits are slightly too small
_EARLY_SHARE = 0.95  # of what is spent, up to the horizon
_FIRST_LOOK, _EARLY_LOOKS, _LATER_FACTOR, _MAX_LOOKS = 20, 8, 1.25, 40
_LEAST_P = 1e-12
_NORMAL = NormalDist()


@dataclass(frozen=True)
class ShareEffect:
    """The difference of two shares. `power` is that of finding an effect of `EFFECT`, in either direction."""

    hits: int
    n: int
    blind_hits: int
    blind_n: int

    @property
    def exposed(self) -> float | None:
        return self.hits / self.n if self.n else None

    @property
    def blind(self) -> float | None:
        return self.blind_hits / self.blind_n if self.blind_n else None

    @property
    def difference(self) -> float | None:
        return None if self.exposed is None or self.blind is None else self.exposed - self.blind

    @property
    def interval(self) -> Interval | None:
        if self.difference is None:
            return None
        return difference_interval(right=self.hits, n=self.n, other_right=self.blind_hits, other_n=self.blind_n)

    @property
    def power(self) -> float | None:
        return None if self.blind is None or not self.n else compute_power(self.blind, EFFECT, self.n, self.blind_n)

    @property
    def n_needed(self) -> int | None:
        """Return the cases per arm that find an effect of `EFFECT` with power `POWER`."""
        return None if self.blind is None else plan_sample_size(self.blind, EFFECT)


@dataclass(frozen=True)
class TimeEffect:
    """The ratio of geometric means of times, exposed to blind; `power` is that of finding a change by `TIME_CHANGE`."""

    ratio: float
    exposed: float
    blind: float
    n: int
    blind_n: int
    interval: Interval
    power: float


TIME_CHANGE = 0.15


def shift_share(blind: float, effect: float) -> float:
    """Return the share with an effect of this size, in the direction in which it is possible."""
    return blind + effect if blind + effect <= 1 else blind - effect


def compute_power(blind: float, effect: float, n: int, blind_n: int, alpha: float = ALPHA) -> float:
    """Return the probability that a two-sided test of two shares shows an effect of this size."""
    exposed = shift_share(blind, effect)
    pooled = (n * exposed + blind_n * blind) / (n + blind_n)
    null = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / blind_n))
    spread = math.sqrt(exposed * (1 - exposed) / n + blind * (1 - blind) / blind_n)
    if spread == 0:
        return 1.0
    return _NORMAL.cdf((effect - _NORMAL.inv_cdf(1 - alpha / 2) * null) / spread)


def plan_sample_size(blind: float, effect: float, *, alpha: float = ALPHA, power: float = POWER) -> int:
    """Return the cases per arm with which a two-sided test shows an effect of this size."""
    low, high = 1, 1
    while compute_power(blind, effect, high, high, alpha) < power:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if compute_power(blind, effect, middle, middle, alpha) < power else (low, middle)
    return high


def compare_times(exposed: Sequence[float], blind: Sequence[float]) -> TimeEffect | None:
    """Compare times above 0. Return None with fewer than two of each, or without any spread."""
    if min(len(exposed), len(blind)) < 2:
        return None
    one, other = np.log(np.asarray(exposed, dtype=np.float64)), np.log(np.asarray(blind, dtype=np.float64))
    parts = [float(each.var(ddof=1)) / len(each) for each in (one, other)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return None
    df = sum(parts) ** 2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (one, other), strict=True))
    middle = float(one.mean() - other.mean())
    half = t_quantile(p=0.975, df=df) * error
    shift = math.log(1 + TIME_CHANGE)
    return TimeEffect(
        ratio=math.exp(middle),
        exposed=math.exp(float(one.mean())),
        blind=math.exp(float(other.mean())),
        n=len(one),
        blind_n=len(other),
        interval=Interval(math.exp(middle - half), math.exp(middle + half), 0.95, "Welch"),
        power=_NORMAL.cdf(shift / error - t_quantile(p=0.975, df=df)),
    )


def summarize_share(hits: int, n: int) -> Interval:
    return wilson_interval(right=hits, n=n)


# The sequential test


def plan_horizon(exposed_share: float, blind_share: float) -> float:
    """Return the decisions per arm by which most of the error rate is spent: when the exposed arm has `HORIZON`. A
    larger blind arm adds to them, because the decisions per arm are the harmonic mean of both."""
    ratio = blind_share / exposed_share
    return HORIZON * max(1.0, 2 * ratio / (1 + ratio))


def spend_alpha(n: float, alpha: float = ALPHA, horizon: float = HORIZON) -> float:
    """Return the error rate that may be spent after `n` decisions per arm."""
    spent = _SPENT * alpha
    early = spend_like_obrien_fleming(n / horizon, _EARLY_SHARE * spent)
    return early + (1 - _EARLY_SHARE) * spent * max(0.0, 1 - horizon / n)


def plan_looks(horizon: float = HORIZON) -> list[float]:
    """Return the decisions per arm after which the test looks: up to the horizon in equal steps, then growing ones."""
    step = (horizon - _FIRST_LOOK) / (_EARLY_LOOKS - 1)
    looks = [_FIRST_LOOK + step * place for place in range(_EARLY_LOOKS)]
    while len(looks) < _MAX_LOOKS:
        looks.append(looks[-1] * _LATER_FACTOR)
    return looks


@dataclass(frozen=True)
class HarmTest:
    """The state of the test at its last look. `n` is the decisions per arm at it; z and boundary are None before the
    first look."""

    is_harmful: bool
    n: float
    n_now: float  # decisions per arm by now
    z: float | None = None
    boundary: float | None = None


def find_harm(
    is_exposed: Sequence[bool], follows: Sequence[bool], *, alpha: float = ALPHA, horizon: float = HORIZON
) -> HarmTest:
    """Test decisions in the order in which they were made: whether the rater saw the machine's wrong answer, and
    whether the rater gave it."""
    exposed, hits = np.asarray(is_exposed, dtype=np.bool_), np.asarray(follows, dtype=np.bool_)
    groups = (exposed & hits, exposed, ~exposed & hits, ~exposed)
    counts = [np.cumsum(each, dtype=np.int64) for each in groups]
    sizes = _harmonic_mean(counts[1], counts[3])
    now = float(sizes[-1]) if len(sizes) else 0.0
    looks = [n for n in plan_looks(horizon) if n <= now]
    if not looks:
        return HarmTest(False, 0.0, now)
    z = 0.0
    boundaries = _plan_boundaries(looks, alpha, horizon)
    for n, boundary in zip(looks, boundaries, strict=True):
        at = int((sizes >= n).argmax())
        z = compute_z(*(int(each[at]) for each in counts))
        if z >= boundary:
            return HarmTest(True, n, now, z, boundary)
    return HarmTest(False, looks[-1], now, z, boundaries[-1])


def _plan_boundaries(looks: Sequence[float], alpha: float, horizon: float) -> tuple[float, ...]:
    return compute_boundaries(tuple(looks), tuple(spend_alpha(n, alpha, horizon) for n in looks))


def _harmonic_mean(one: Ints, other: Ints) -> Floats:
    return np.asarray(2 * one * other / np.maximum(one + other, 1), dtype=np.float64)


def compute_z(hits: int, n: int, blind_hits: int, blind_n: int) -> float:
    """Return the normal quantile of Fisher's exact test with the mid-p value, one-sided: large if more of the exposed
    decisions are hits. A difference of shares over its standard error is too large too often for rare hits in arms of
    different sizes."""
    low, shares = _distribute_hits(n, blind_n, hits + blind_hits)
    p = float(shares[hits - low + 1 :].sum() + shares[hits - low] / 2)
    return -_NORMAL.inv_cdf(min(max(p, _LEAST_P), 1 - _LEAST_P))


def _distribute_hits(n: int, blind_n: int, total: int) -> tuple[int, Floats]:
    """Return the least number of hits that the exposed arm can have of this total, and the probability of each number
    from there, if exposure does nothing: the hypergeometric distribution."""
    logs = _list_log_factorials(n + blind_n)
    hits = np.arange(max(0, total - blind_n), min(n, total) + 1)
    weights = -logs[hits] - logs[n - hits] - logs[total - hits] - logs[blind_n - total + hits]
    shares = np.exp(weights - weights.max())
    return int(hits[0]), np.asarray(shares / shares.sum(), dtype=np.float64)


@functools.lru_cache(maxsize=128)
def _list_log_factorials(n: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


def simulate_stops(
    blind: float,
    exposed: float,
    *,
    n: int,
    runs: int,
    blind_ratio: float = 1.0,
    alpha: float = ALPHA,
    seed: int = 0,
) -> Bools:
    """Simulate projects with `n` decisions of the exposed arm and `blind_ratio` times as many blind ones, and return
    which of them stop."""
    horizon = plan_horizon(1.0, blind_ratio)
    per_exposed = 2 * blind_ratio / (1 + blind_ratio)
    looks = [look for look in plan_looks(horizon) if look <= n * per_exposed + 1e-9]
    draws = np.random.default_rng(seed)
    hits, blind_hits = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
    is_stopped = np.zeros(runs, dtype=np.bool_)
    size = blind_size = 0
    for look, boundary in zip(looks, _plan_boundaries(looks, alpha, horizon), strict=True):
        more = math.ceil(look / per_exposed - 1e-9) - size
        size += more
        blind_more = math.ceil(size * blind_ratio - 1e-9) - blind_size
        blind_size += blind_more
        hits += draws.binomial(more, exposed, runs)
        blind_hits += draws.binomial(blind_more, blind, runs)
        totals, place = np.unique(hits + blind_hits, return_inverse=True)
        critical = np.array([_find_critical_hits(size, blind_size, int(total), boundary) for total in totals])
        is_stopped |= hits >= critical[place]
    return np.asarray(is_stopped, dtype=np.bool_)


def _find_critical_hits(n: int, blind_n: int, total: int, boundary: float) -> int:
    """Return the least number of hits with which the test stops."""
    low, shares = _distribute_hits(n, blind_n, total)
    p = np.cumsum(shares[::-1])[::-1] - shares / 2
    return low + int((p > 1 - _NORMAL.cdf(boundary)).sum())
