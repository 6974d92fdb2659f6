"""Reranking by the PRM: the expected share of right answers if the best-scored of N candidates is taken.

Exact over all subsets: with n candidates in order of score, candidate r (from 0) is the best of a random N of them with
probability C(n - 1 - r, N - 1) / C(n, N); candidates of equal score share theirs. For comparison: a random choice
(N = 1) and the best possible one (a right candidate is among the N).

K. Cobbe et al. (2021), "Training verifiers to solve math word problems", arXiv:2110.14168; the sum over subsets as in
M. Chen et al. (2021), arXiv:2107.03374, section 2.1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class BestOfNPoint:
    """Shares of right answers: chosen by the PRM, by chance, and the best possible."""

    n: int
    chosen: float
    by_chance: float
    possible: float
    problems: int


def best_of_n_curve(*, scores: Floats, is_right: Bools, problems: Ints, sizes: Sequence[int]) -> list[BestOfNPoint]:
    """Return a point for each N, averaged over the problems that have at least N candidates."""
    order = np.argsort(problems, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(problems[order])) + 1) if len(order) else []
    points = []
    for n in sizes:
        rows = [_score_problem(scores[group], is_right[group], n) for group in groups if len(group) >= n]
        if rows:
            chosen, by_chance, possible = np.mean(rows, axis=0).tolist()
            points.append(BestOfNPoint(n, chosen, by_chance, possible, len(rows)))
    return points


def _score_problem(scores: Floats, is_right: Bools, n: int) -> tuple[float, float, float]:
    ranked = np.argsort(-scores, kind="stable")
    right, score = is_right[ranked].astype(np.float64), scores[ranked]
    size, n_subsets = len(scores), math.comb(len(scores), n)
    chance = np.array([math.comb(size - 1 - rank, n - 1) / n_subsets for rank in range(size)])
    _, tie = np.unique(-score, return_inverse=True)
    tie_chance = np.bincount(tie, weights=chance) / np.bincount(tie)
    wrong = size - int(is_right.sum())
    return float(tie_chance[tie] @ right), float(right.mean()), 1 - math.comb(wrong, n) / n_subsets
