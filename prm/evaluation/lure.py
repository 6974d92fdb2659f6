"""Estimates for the whole pool from actively chosen labels: levelled unbiased risk, plain and self-normalised.

    v_m = 1 + (N - M)/(N - m) (1/((N - m + 1) q_m) - 1),   plain Σ v_m L_m / M,   self-normalised Σ v_m L_m / Σ v_m

N traces in the pool, M draws, q_m the probability of draw m given the draws before it. The q of a draw is the one that
was in force when it was made: a fixed softmax in its place biases the plain form by several points.

S. Farquhar, Y. Gal, T. Rainforth (2021), "On statistical bias in active learning", arXiv:2101.11665; J. Kossen,
S. Farquhar, Y. Gal, T. Rainforth (2021), "Active testing", arXiv:2103.05331.
"""

from dataclasses import dataclass

import numpy as np

from stats.arrays import Floats, divide


@dataclass(frozen=True)
class LureEstimate:
    plain: float
    self_normalised: float
    effective_size: float  # how many equally likely draws would tell as much


def lure_weights(*, q: Floats, pool_size: int) -> Floats:
    """v of every draw, in the order of the draws."""
    n, draws = pool_size, len(q)
    if draws > n or (draws and not (q.min() > 0 and q.max() <= 1 + 1e-12)):
        raise ValueError(f"{draws} draws from {n} traces need as many probabilities above 0")
    m = np.arange(1, draws + 1)
    left = np.maximum(n - m, 1)  # the last draw from a pool drawn empty has n = draws and weighs 1
    return np.asarray(1.0 + (n - draws) / left * (1.0 / ((n - m + 1) * q) - 1.0))


def estimate_pool_mean(*, losses: Floats, q: Floats, pool_size: int) -> LureEstimate:
    """The pool's mean loss; NaN where nothing was drawn or the weights add up to nothing."""
    v = lure_weights(q=q, pool_size=pool_size)
    total = v.sum()
    return LureEstimate(
        plain=float(divide((v * losses).sum(), np.asarray(len(v)))),
        self_normalised=float(divide((v * losses).sum(), total)),
        effective_size=float(divide(total**2, (v**2).sum())),
    )


def estimate_slice_mean(*, losses: Floats, is_in_slice: Floats, q: Floats, pool_size: int) -> float:
    """The mean loss of a part of the pool whose size is not known: self-normalised within the slice."""
    v = lure_weights(q=q, pool_size=pool_size) * is_in_slice
    return float(divide((v * losses).sum(), v.sum()))
