"""Labels from the votes of many workers: majorities, and Dawid and Skene's model.

In the model each worker has a table of error rates, each task a hidden class, and EM estimates both:

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

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stats.arrays import Floats, Ints, divide

SMOOTHING = 0.1
DIAGONAL_SMOOTHING = 0.5  # added for the right label: without data, a worker is assumed to be mostly right
_SMALLEST = 1e-300  # replaces 0 under a logarithm


@dataclass(frozen=True)
class LabelVotes:
    """One row per vote: task, worker and label, each numbered from 0. `k` is the number of possible labels."""

    tasks: Ints
    workers: Ints
    labels: Ints
    k: int

    def __post_init__(self) -> None:
        if not len(self.tasks) == len(self.workers) == len(self.labels):
            raise ValueError("every vote needs a task, a worker and a label")
        if len(self.labels) and not (self.labels.min() >= 0 and self.labels.max() < self.k):
            raise ValueError(f"labels must be numbered from 0 to {self.k - 1}")

    @property
    def n_tasks(self) -> int:
        return int(self.tasks.max()) + 1 if len(self.tasks) else 0

    @property
    def n_workers(self) -> int:
        return int(self.workers.max()) + 1 if len(self.workers) else 0

    def counts(self) -> Floats:
        """Return votes for each label, (tasks, k)."""
        cells = np.bincount(self.tasks * self.k + self.labels, minlength=self.n_tasks * self.k)
        return cells.reshape(self.n_tasks, self.k).astype(np.float64)


def take_majority(votes: LabelVotes) -> tuple[Ints, Floats]:
    """Return the most common label of each task (-1 for a task without votes) and its share of the votes."""
    counts = votes.counts()
    n_votes = counts.sum(axis=1)
    labels = np.where(n_votes > 0, counts.argmax(axis=1), -1) if votes.k else np.full(len(counts), -1)
    return labels, counts.max(axis=1, initial=0.0) / np.maximum(n_votes, 1)


@dataclass(frozen=True)
class LeadingPlace:
    """The most common first error among submissions; `place` None means "no error"."""

    place: int | None
    n: int
    n_next: int
    n_votes: int

    @property
    def share(self) -> float:
        return self.n / self.n_votes

    @property
    def margin(self) -> float:
        return (self.n - self.n_next) / self.n_votes

    @property
    def is_tied(self) -> bool:
        return self.n == self.n_next


def find_leading_place(votes: Sequence[int | None]) -> LeadingPlace | None:
    """Return the leading place of one trace, the earlier one of a tie, or None without votes."""
    ranked = sorted(Counter(votes).items(), key=lambda item: (-item[1], item[0] is None, item[0] or 0))
    if not ranked:
        return None
    (place, n), n_next = ranked[0], ranked[1][1] if len(ranked) > 1 else 0
    return LeadingPlace(place, n, n_next, len(votes))


# Dawid and Skene


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
    order = np.argsort(votes.tasks, kind="stable")  # so that lookups for a million votes stay in the processor's cache
    votes = LabelVotes(votes.tasks[order], votes.workers[order], votes.labels[order], votes.k)
    counts = votes.counts()
    posterior = np.nan_to_num(divide(counts, counts.sum(axis=1, keepdims=True)), nan=1 / max(votes.k, 1))
    gain, likelihood, rounds = np.inf, -np.inf, 0
    prior = smoothing + diagonal_smoothing * np.eye(votes.k)
    shares, errors = _maximize(votes, posterior, prior)
    while rounds < max_rounds and gain > tolerance * max(len(votes.tasks), 1):
        posterior, new_likelihood = _expect(votes, shares, errors)
        shares, errors = _maximize(votes, posterior, prior)
        gain, likelihood, rounds = new_likelihood - likelihood, new_likelihood, rounds + 1
    return DawidSkeneFit(posterior, shares, errors, likelihood, rounds, gain <= tolerance * max(len(votes.tasks), 1))


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
