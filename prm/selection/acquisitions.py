"""Acquisition functions: how much is gained by labeling a trace. Scores are above zero; a higher one is labeled sooner.

    entropy_per_root_cost        H(E)/√C with H(E) = Σ_i S_{i-1} H_b(h_i), the default
    root_variance_per_root_cost  Σ_i S_{i-1} √(h_i (1 - h_i)) / √C
    max_step_entropy             max_i H_b(h_i)
    margin                       1 - (p₁ - p₂), the two most probable positions of the first error, "none" included
    convincing_wrong_answer      P(none) if the answer is known to be wrong, else almost zero
    longest                      mean log characters of a step: uses no PRM, and is a strong baseline
    random                       1

E, S and h are defined in `pool`, C in `cost`; H_b is the binary entropy. A project can name its own function as
"package.module:function".

H. Lightman et al. (2023), arXiv:2305.20050 (convincing wrong answers); B. Settles (2009), "Active learning literature
survey" (entropy, margin; cost: section 6.1).
"""

import importlib
from collections.abc import Callable

import numpy as np

from prm.selection import cost
from prm.selection.cost import ReadingRates
from prm.selection.pool import Pool, first_error_probabilities, no_error_probabilities, still_right_before
from stats.arrays import Floats

Acquisition = Callable[[Pool, ReadingRates], Floats]
_MIN_SCORE = 1e-9


class UnknownAcquisition(ValueError):
    """The name is neither a built-in acquisition function nor an importable one."""


class InvalidAcquisitionScores(ValueError):
    """A custom acquisition function did not return one finite number per trace."""


def find_acquisition(name: str) -> Acquisition:
    """Return a built-in acquisition function, or import the one that "package.module:function" names."""
    if name in ACQUISITIONS:
        return ACQUISITIONS[name]
    module, _, attribute = name.partition(":")
    try:
        function: Acquisition = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        names = ", ".join(sorted(ACQUISITIONS))
        raise UnknownAcquisition(f"No acquisition {name!r}. Use {names} or package.module:function.") from None
    return function


def acquisition_scores(name: str, pool: Pool, reading: ReadingRates) -> Floats:
    """Return a finite score above zero for every trace."""
    scores = np.asarray(find_acquisition(name)(pool, reading), dtype=np.float64)
    if scores.shape != (pool.n,) or not np.isfinite(scores).all():
        raise InvalidAcquisitionScores(f"{name} must return {pool.n} finite scores, one per trace")
    return np.maximum(scores, _MIN_SCORE)


def entropy_per_root_cost(pool: Pool, reading: ReadingRates) -> Floats:
    return np.asarray(first_error_entropy(pool) / np.sqrt(cost.expected_seconds(pool, reading)))


def root_variance_per_root_cost(pool: Pool, reading: ReadingRates) -> Floats:
    spread = still_right_before(pool) * np.sqrt(pool.hazards * (1 - pool.hazards))
    return np.asarray(pool.sum_per_trace(spread) / np.sqrt(cost.expected_seconds(pool, reading)))


def max_step_entropy(pool: Pool, reading: ReadingRates) -> Floats:
    return np.maximum.reduceat(step_entropy(pool.hazards), pool.starts) if pool.n else np.zeros(0)


def margin(pool: Pool, reading: ReadingRates) -> Floats:
    places = first_error_probabilities(pool)
    first = np.maximum.reduceat(places, pool.starts) if pool.n else np.zeros(0)
    candidates = np.flatnonzero(places >= first[pool.traces])
    _, one_per_trace = np.unique(pool.traces[candidates], return_index=True)
    others = places.copy()
    others[candidates[one_per_trace]] = 0.0
    second = np.maximum.reduceat(others, pool.starts) if pool.n else np.zeros(0)
    ranked = np.sort(np.column_stack([first, second, no_error_probabilities(pool)]), axis=1)
    return np.asarray(1.0 - (ranked[:, 2] - ranked[:, 1]))


def convincing_wrong_answer(pool: Pool, reading: ReadingRates) -> Floats:
    return np.where(pool.is_answer_wrong, no_error_probabilities(pool), 0.0)


def longest(pool: Pool, reading: ReadingRates) -> Floats:
    return np.asarray(pool.sum_per_trace(np.log1p(pool.characters)) / pool.lengths)


def random(pool: Pool, reading: ReadingRates) -> Floats:
    return np.ones(pool.n)


def first_error_entropy(pool: Pool) -> Floats:
    """H(E) in nats by the chain rule: the entropy of each step, weighted by the probability of reaching it."""
    return pool.sum_per_trace(still_right_before(pool) * step_entropy(pool.hazards))


def step_entropy(hazards: Floats) -> Floats:
    h = np.clip(hazards, 1e-12, 1 - 1e-12)
    return np.asarray(-h * np.log(h) - (1 - h) * np.log1p(-h))


ACQUISITIONS: dict[str, Acquisition] = {
    function.__name__: function
    for function in (
        entropy_per_root_cost,
        root_variance_per_root_cost,
        max_step_entropy,
        margin,
        convincing_wrong_answer,
        longest,
        random,
    )
}
