"""Majority: the label that most voters gave, with its share and its margin. For showing, and where raters are few.

    share = n_1 / m,   margin = (n_1 - n_2) / m   for the first and second most common label

A tie is told as a tie; the label is then the lowest on the scale, so that an error nobody outvoted is not passed over.

N. de Condorcet (1785), "Essai sur l'application de l'analyse à la probabilité des décisions"; as the baseline of
learning from crowds: R. Snow et al. (2008), https://aclanthology.org/D08-1027.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labeling.agreement.arrays import Bools, Floats, Ints
from labeling.agreement.votes import Votes


@dataclass(frozen=True)
class Majority:
    """Per task; -1 as a label where nobody voted."""

    labels: Ints
    shares: Floats
    margins: Floats
    is_tied: Bools


def of_votes(votes: Votes) -> Majority:
    return of_counts(votes.counts())


def of_counts(counts: Floats) -> Majority:
    """From (tasks, k) counts of votes."""
    total = counts.sum(axis=1)
    cast = np.maximum(total, 1)
    ranked = np.sort(np.column_stack([counts, np.zeros(len(counts))]), axis=1)
    first, second = ranked[:, -1], ranked[:, -2]
    return Majority(
        labels=np.where(total > 0, counts.argmax(axis=1), -1) if counts.shape[1] else np.full(len(counts), -1),
        shares=first / cast,
        margins=(first - second) / cast,
        is_tied=(first == second) & (total > 0),
    )


@dataclass(frozen=True)
class Leading:
    """The place of the first error that most readings name, None for "no error"; of two alike the earlier one."""

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


def of_places(votes: Sequence[int | None]) -> Leading | None:
    """Of one trace. None where nobody names a place."""
    ranked = sorted(Counter(votes).items(), key=lambda each: (-each[1], each[0] is None, each[0] or 0))
    if not ranked:
        return None
    (place, n), n_next = ranked[0], ranked[1][1] if len(ranked) > 1 else 0
    return Leading(place, n, n_next, len(votes))
