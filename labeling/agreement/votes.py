"""The data shape of consensus on labels: who gave which label to which task, all three as numbers from 0."""

from dataclasses import dataclass

import numpy as np

from labeling.agreement.arrays import Floats, Ints, divide


@dataclass(frozen=True)
class Votes:
    """One row per vote; `k` labels there are, whether or not each was used."""

    tasks: Ints
    workers: Ints
    labels: Ints
    k: int

    def __post_init__(self) -> None:
        if not len(self.tasks) == len(self.workers) == len(self.labels):
            raise ValueError("every vote has a task, a worker and a label")
        if len(self.labels) and not (self.labels.min() >= 0 and self.labels.max() < self.k):
            raise ValueError(f"labels are numbered from 0 to {self.k - 1}")

    @property
    def n_tasks(self) -> int:
        return int(self.tasks.max()) + 1 if len(self.tasks) else 0

    @property
    def n_workers(self) -> int:
        return int(self.workers.max()) + 1 if len(self.workers) else 0

    def counts(self) -> Floats:
        """(tasks, k): votes for each label."""
        cells = np.bincount(self.tasks * self.k + self.labels, minlength=self.n_tasks * self.k)
        return cells.reshape(self.n_tasks, self.k).astype(np.float64)


def shares(votes: Votes) -> Floats:
    """(tasks, k): the share of each label among the votes of a task; a task without votes has NaN."""
    counts = votes.counts()
    return divide(counts, counts.sum(axis=1, keepdims=True))
