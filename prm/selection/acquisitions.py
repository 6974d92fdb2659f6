"""What a trace is worth reading: scores above zero, the higher the sooner.

    entropy_per_root_cost      H(E)/√C with H(E) = Σ_i S_{i-1} H_b(h_i), the default
    root_variance_per_root_cost  Σ_i S_{i-1} √(h_i (1 - h_i)) / √C
    max_step_entropy           max_i H_b(h_i)
    margin                     1 - (p₁ - p₂), the two likeliest places of the first error, "none" being one
    convincing_wrong_answer    P(none) where the answer is known to be wrong, else next to nothing
    longest                    mean log characters of a step: knows nothing, and is hard to beat
    random                     1

H. Lightman et al. (2023), arXiv:2305.20050 (convincing wrong answers); B. Settles (2009), "Active learning literature
survey" (entropy, margin; cost: section 6.1). A foreign acquisition is named by its path, "package.module:function".
"""

import importlib
from collections.abc import Callable

import numpy as np

from prm.selection import cost, survival
from prm.selection.cost import ReadingRates
from prm.selection.pool import Pool
from stats.arrays import Floats

Acquisition = Callable[[Pool, ReadingRates], Floats]
_LITTLE = 1e-9


class UnknownAcquisition(ValueError):
    pass


def find_acquisition(name: str) -> Acquisition:
    """One of the list, or a function of somebody else's package."""
    if name in ACQUISITIONS:
        return ACQUISITIONS[name]
    package, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(package), function)
    except (ImportError, AttributeError, ValueError):
        known = ", ".join(sorted(ACQUISITIONS))
        raise UnknownAcquisition(f"no acquisition {name!r}: choose {known} or package.module:function") from None
    chosen: Acquisition = found
    return chosen


def acquisition_scores(name: str, pool: Pool, reading: ReadingRates) -> Floats:
    """A finite score above zero for every trace, whatever the acquisition returns; ValueError where it cannot."""
    found = np.asarray(find_acquisition(name)(pool, reading), dtype=np.float64)
    if found.shape != (pool.n,) or not np.isfinite(found).all():
        raise ValueError(f"{name} gave {found.shape} scores for {pool.n} traces, or some that are no numbers")
    return np.maximum(found, _LITTLE)


def entropy_per_root_cost(pool: Pool, reading: ReadingRates) -> Floats:
    return np.asarray(first_error_entropy(pool) / np.sqrt(cost.expected_seconds(pool, reading)))


def root_variance_per_root_cost(pool: Pool, reading: ReadingRates) -> Floats:
    spread = survival.still_right_before(pool) * np.sqrt(pool.hazards * (1 - pool.hazards))
    return np.asarray(pool.per_trace(spread) / np.sqrt(cost.expected_seconds(pool, reading)))


def max_step_entropy(pool: Pool, reading: ReadingRates) -> Floats:
    return np.maximum.reduceat(step_entropy(pool.hazards), pool.starts) if pool.n else np.zeros(0)


def margin(pool: Pool, reading: ReadingRates) -> Floats:
    places = survival.first_error_probabilities(pool)
    first = np.maximum.reduceat(places, pool.starts) if pool.n else np.zeros(0)
    at_first = np.flatnonzero(places >= first[pool.traces])
    _, kept = np.unique(pool.traces[at_first], return_index=True)
    others = places.copy()
    others[at_first[kept]] = 0.0
    second = np.maximum.reduceat(others, pool.starts) if pool.n else np.zeros(0)
    ranked = np.sort(np.column_stack([first, second, survival.no_error_probabilities(pool)]), axis=1)
    return np.asarray(1.0 - (ranked[:, 2] - ranked[:, 1]))


def convincing_wrong_answer(pool: Pool, reading: ReadingRates) -> Floats:
    return np.where(pool.is_answer_wrong, survival.no_error_probabilities(pool), 0.0)


def longest(pool: Pool, reading: ReadingRates) -> Floats:
    return np.asarray(pool.per_trace(np.log1p(pool.characters)) / pool.lengths)


def random(pool: Pool, reading: ReadingRates) -> Floats:
    return np.ones(pool.n)


def first_error_entropy(pool: Pool) -> Floats:
    """H(E) in nats, by the chain rule: what each step adds, weighed by the chance to come to it."""
    return pool.per_trace(survival.still_right_before(pool) * step_entropy(pool.hazards))


def step_entropy(hazards: Floats) -> Floats:
    kept = np.clip(hazards, 1e-12, 1 - 1e-12)
    return np.asarray(-kept * np.log(kept) - (1 - kept) * np.log1p(-kept))


ACQUISITIONS: dict[str, Acquisition] = {
    found.__name__: found
    for found in (
        entropy_per_root_cost,
        root_variance_per_root_cost,
        max_step_entropy,
        margin,
        convincing_wrong_answer,
        longest,
        random,
    )
}
