"""Label votes of many workers, and majorities: the most common label with its share and margin."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints, divide


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


def vote_shares(votes: LabelVotes) -> Floats:
    """Return the share of each label among the votes of a task, (tasks, k), NaN for a task without votes."""
    counts = votes.counts()
    return divide(counts, counts.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Majority:
    """Majorities per task; the label is -1 for a task without votes."""

    labels: Ints
    shares: Floats
    margins: Floats
    is_tied: Bools


def take_majority(votes: LabelVotes) -> Majority:
    return take_majority_of_counts(votes.counts())


def take_majority_of_counts(counts: Floats) -> Majority:
    """Return majorities from counts (tasks, k) of votes."""
    total = counts.sum(axis=1)
    n_votes = np.maximum(total, 1)
    ranked = np.sort(np.column_stack([counts, np.zeros(len(counts))]), axis=1)
    first, second = ranked[:, -1], ranked[:, -2]
    return Majority(
        labels=np.where(total > 0, counts.argmax(axis=1), -1) if counts.shape[1] else np.full(len(counts), -1),
        shares=first / n_votes,
        margins=(first - second) / n_votes,
        is_tied=(first == second) & (total > 0),
    )


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
