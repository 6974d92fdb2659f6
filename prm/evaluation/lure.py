"""Estimates for the whole pool from actively selected labels: levelled unbiased risk, plain and self-normalized.

    v_m = 1 + (N - M)/(N - m) (1/((N - m + 1) q_m) - 1),   plain Σ v_m L_m / M,   self-normalized Σ v_m L_m / Σ v_m

N traces in the pool, M draws, L_m the loss of draw m, q_m its probability given the draws before it. q must be the
probability at the time of the draw: a fixed softmax in its place biases the plain form by several points.

S. Farquhar, Y. Gal, T. Rainforth (2021), "On statistical bias in active learning", arXiv:2101.11665; J. Kossen,
S. Farquhar, Y. Gal, T. Rainforth (2021), "Active testing", arXiv:2103.05331.
"""

from dataclasses import dataclass

import numpy as np

from stats.arrays import Floats, divide


class ImpossibleDraws(ValueError):
    """The draws cannot have come from a pool of this size with these probabilities."""


@dataclass(frozen=True)
class LureEstimate:
    plain: float
    self_normalized: float


def lure_weights(*, q: Floats, pool_size: int) -> Floats:
    """Return v of every draw, in the order of the draws."""
    n, draws = pool_size, len(q)
    if draws > n or (draws and not (q.min() > 0 and q.max() <= 1 + 1e-12)):
        raise ImpossibleDraws(f"{draws} draws from {n} traces: every probability must be in (0, 1]")
    m = np.arange(1, draws + 1)
    n_left = np.maximum(n - m, 1)  # after the last draw of a whole pool nothing is left, and its weight is 1
    return np.asarray(1.0 + (n - draws) / n_left * (1.0 / ((n - m + 1) * q) - 1.0))


def estimate_pool_mean(*, losses: Floats, q: Floats, pool_size: int) -> LureEstimate:
    """Estimate the pool's mean loss; NaN without draws or if the weights add up to zero."""
    v = lure_weights(q=q, pool_size=pool_size)
    return LureEstimate(
        plain=float(divide((v * losses).sum(), np.asarray(len(v)))),
        self_normalized=float(divide((v * losses).sum(), v.sum())),
    )


def estimate_slice_mean(*, losses: Floats, is_in_slice: Floats, q: Floats, pool_size: int) -> float:
    """Estimate the mean loss of a part of the pool of unknown size, self-normalized within the part."""
    v = lure_weights(q=q, pool_size=pool_size) * is_in_slice
    return float(divide((v * losses).sum(), v.sum()))
