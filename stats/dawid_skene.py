"""Dawid and Skene's model: each worker has a table of error rates, each task a hidden class, and EM estimates both.

    E step   P(class j of task i) ∝ p_j Π over votes (worker w, label l) on i of π^w_jl
    M step   p_j = mean over tasks of P(class j)
             π^w_jl = (expected votes l of w on class j + s_jl) / (the sum of the same over l)

The smoothing counts s_jl keep a worker who never used a label on a class from being certain. They are larger for j = l:
otherwise EM can explain the labels of a lone worker as well by one class and a careless worker, and drifts there. With
no smoothing this is the paper's estimate. EM starts from the shares of votes and stops when a round gains less than
`tolerance` per vote.

A. P. Dawid, A. M. Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM algorithm",
doi:10.2307/2346806.
"""

from dataclasses import dataclass

import numpy as np

from stats import label_votes
from stats.arrays import Floats, Ints
from stats.label_votes import LabelVotes

SMOOTHING = 0.1
DIAGONAL_SMOOTHING = 0.5  # added for the right label: without data, a worker is assumed to be mostly right
_SMALLEST = 1e-300  # replaces 0 under a logarithm


@dataclass(frozen=True)
class DawidSkeneFit:
    """`posterior` is (tasks, k); `errors` (workers, k, k) has the class in rows and the given label in columns."""

    posterior: Floats
    class_shares: Floats
    errors: Floats
    log_likelihood: float
    rounds: int
    has_converged: bool

    @property
    def labels(self) -> Ints:
        return np.asarray(self.posterior.argmax(axis=1), dtype=np.int64)

    @property
    def probabilities(self) -> Floats:
        """The posterior of each chosen label."""
        return self.posterior.max(axis=1) if self.posterior.size else np.zeros(len(self.posterior))


def fit_votes(
    votes: LabelVotes,
    *,
    smoothing: float = SMOOTHING,
    diagonal_smoothing: float = DIAGONAL_SMOOTHING,
    max_rounds: int = 100,
    tolerance: float = 1e-6,
) -> DawidSkeneFit:
    votes = _sort_by_task(votes)
    posterior = np.nan_to_num(label_votes.vote_shares(votes), nan=1 / max(votes.k, 1))
    gain, likelihood, rounds = np.inf, -np.inf, 0
    prior = smoothing + diagonal_smoothing * np.eye(votes.k)
    shares, errors = _maximize(votes, posterior, prior)
    while rounds < max_rounds and gain > tolerance * max(len(votes.tasks), 1):
        posterior, new_likelihood = _expect(votes, shares, errors)
        shares, errors = _maximize(votes, posterior, prior)
        gain, likelihood, rounds = new_likelihood - likelihood, new_likelihood, rounds + 1
    return DawidSkeneFit(posterior, shares, errors, likelihood, rounds, gain <= tolerance * max(len(votes.tasks), 1))


def _sort_by_task(votes: LabelVotes) -> LabelVotes:
    """Sort votes by task, so that lookups for a million votes stay in the processor's cache."""
    order = np.argsort(votes.tasks, kind="stable")
    return LabelVotes(votes.tasks[order], votes.workers[order], votes.labels[order], votes.k)


def _maximize(votes: LabelVotes, posterior: Floats, prior: Floats) -> tuple[Floats, Floats]:
    cells = votes.workers * votes.k + votes.labels
    by_class = [
        np.bincount(cells, weights=column[votes.tasks], minlength=votes.n_workers * votes.k)
        for column in np.ascontiguousarray(posterior.T)
    ]
    counted = np.stack(by_class).reshape(votes.k, votes.n_workers, votes.k).transpose(1, 0, 2) + prior
    errors = counted / np.maximum(counted.sum(axis=2, keepdims=True), _SMALLEST)
    return posterior.sum(axis=0) / max(votes.n_tasks, 1), errors


def _expect(votes: LabelVotes, shares: Floats, errors: Floats) -> tuple[Floats, float]:
    cells = votes.workers * votes.k + votes.labels
    log_errors = np.log(np.maximum(errors, _SMALLEST)).transpose(1, 0, 2).reshape(votes.k, -1)
    logs = np.stack(
        [np.bincount(votes.tasks, weights=row[cells], minlength=votes.n_tasks) for row in log_errors], axis=1
    ) + np.log(np.maximum(shares, _SMALLEST))
    highest = logs.max(axis=1, keepdims=True)
    unscaled = np.exp(logs - highest)
    scale = unscaled.sum(axis=1, keepdims=True)
    return unscaled / scale, float((highest + np.log(scale)).sum())
