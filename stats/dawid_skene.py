"""Dawid and Skene's model: each worker has a table of errors, each task a hidden class, EM finds both.

    E step   P(class j of task i) ∝ p_j Π over votes (worker w, label l) on i of π^w_jl
    M step   p_j = mean over tasks of P(class j)
             π^w_jl = (expected votes l of w on class j + s_jl) / (the sum of the same over l)

The smoothing counts s_jl keep a worker who never used a label on a class from being certain. They are larger for j = l:
without it a lone worker's labels are explained as well by one class and a careless worker, and EM drifts there. Without
any smoothing it is the paper's own estimate. EM starts from the shares of votes and stops when a round gains less than
`tolerance` a vote.

A. P. Dawid, A. M. Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM algorithm",
doi:10.2307/2346806.
"""

from dataclasses import dataclass

import numpy as np

from stats import label_votes as voting
from stats.arrays import Floats, Ints
from stats.label_votes import LabelVotes

SMOOTHING = 0.1
DIAGONAL_SMOOTHING = (
    0.5  # smoothing votes more for the right label: before anything is seen a worker is thought to mean well
)
_NEVER = 1e-300  # stands for 0 under a logarithm


@dataclass(frozen=True)
class DawidSkeneFit:
    """`posterior` (tasks, k); `errors` (workers, k, k): rows the class, columns the label given."""

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
        """Of the label chosen."""
        return self.posterior.max(axis=1) if self.posterior.size else np.zeros(len(self.posterior))


def fit_votes(
    votes: LabelVotes,
    *,
    smoothing: float = SMOOTHING,
    trust: float = DIAGONAL_SMOOTHING,
    max_rounds: int = 100,
    tolerance: float = 1e-6,
) -> DawidSkeneFit:
    votes = _sort_by_task(votes)
    posterior = np.nan_to_num(voting.vote_shares(votes), nan=1 / max(votes.k, 1))
    gained, before, rounds = np.inf, -np.inf, 0
    prior = smoothing + trust * np.eye(votes.k)
    shares, errors = _maximize(votes, posterior, prior)
    while rounds < max_rounds and gained > tolerance * max(len(votes.tasks), 1):
        posterior, likelihood = _expect(votes, shares, errors)
        shares, errors = _maximize(votes, posterior, prior)
        gained, before, rounds = likelihood - before, likelihood, rounds + 1
    return DawidSkeneFit(posterior, shares, errors, before, rounds, gained <= tolerance * max(len(votes.tasks), 1))


def _sort_by_task(votes: LabelVotes) -> LabelVotes:
    """Votes of one task side by side: the look-ups of a million votes then stay in the processor's cache."""
    order = np.argsort(votes.tasks, kind="stable")
    return LabelVotes(votes.tasks[order], votes.workers[order], votes.labels[order], votes.k)


def _maximize(votes: LabelVotes, posterior: Floats, prior: Floats) -> tuple[Floats, Floats]:
    cells = votes.workers * votes.k + votes.labels
    by_class = [
        np.bincount(cells, weights=column[votes.tasks], minlength=votes.n_workers * votes.k)
        for column in np.ascontiguousarray(posterior.T)
    ]
    counted = np.stack(by_class).reshape(votes.k, votes.n_workers, votes.k).transpose(1, 0, 2) + prior
    errors = counted / np.maximum(counted.sum(axis=2, keepdims=True), _NEVER)
    return posterior.sum(axis=0) / max(votes.n_tasks, 1), errors


def _expect(votes: LabelVotes, shares: Floats, errors: Floats) -> tuple[Floats, float]:
    cells = votes.workers * votes.k + votes.labels
    log_errors = np.log(np.maximum(errors, _NEVER)).transpose(1, 0, 2).reshape(votes.k, -1)
    logs = np.stack(
        [np.bincount(votes.tasks, weights=told[cells], minlength=votes.n_tasks) for told in log_errors], axis=1
    ) + np.log(np.maximum(shares, _NEVER))
    highest = logs.max(axis=1, keepdims=True)
    unscaled = np.exp(logs - highest)
    scale = unscaled.sum(axis=1, keepdims=True)
    return unscaled / scale, float((highest + np.log(scale)).sum())
