"""Derive step labels from a consensus on the first error. Pure.

Steps before the first error get the majority label of the raters still at risk; the error itself gets -1; later steps
get no label, because labels of raters who missed the error are right in only a quarter of cases. Under the protocol
"every step", each option gets the majority label of its raters, and a tie gives no label. Alternatives of the step
where the path ended are labeled the same way.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

NEGATIVE, NEUTRAL, POSITIVE = -1, 0, 1


class OptionRating(NamedTuple):
    """One rating, with the first error of the same submission."""

    step: int
    option: int
    rating: int
    first_error: int | None


class StepLabel(NamedTuple):
    step: int
    option: int
    rating: int
    confidence: float
    n_at_risk: int


class PlaceProbability(NamedTuple):
    """The probability that the first error is at a step, and after it."""

    at: Callable[[int], float]
    after: Callable[[int], float]

    @classmethod
    def of_votes(cls, votes: Sequence[int | None]) -> "PlaceProbability":
        n = max(len(votes), 1)
        return cls(
            at=lambda step: votes.count(step) / n,
            after=lambda step: sum(vote is None or vote > step for vote in votes) / n,
        )


def labels_from_first_error(
    ratings: Iterable[OptionRating],
    *,
    first_error: int | None,
    votes: Sequence[int | None],
    probability: PlaceProbability | None = None,
) -> list[StepLabel]:
    """Return labels with confidences: `probability` if given, otherwise shares of the uncensored `votes`."""
    probability = probability or PlaceProbability.of_votes(votes)
    by_option = _group_by_option(row for row in ratings if first_error is None or row.step <= first_error)
    labels = []
    for (step, option), rows in by_option.items():
        at_risk = [row.rating for row in rows if row.first_error is None or row.first_error >= step]
        if option:
            labels += _majority_label(step, option, at_risk)
        elif step == first_error:
            labels.append(StepLabel(step, 0, NEGATIVE, probability.at(step), len(at_risk)))
        else:
            labels += _label_before_error(step, at_risk, probability)
    return sorted(labels)


def labels_from_every_step(ratings: Iterable[OptionRating]) -> list[StepLabel]:
    by_option = _group_by_option(ratings)
    labels = (_majority_label(step, option, [row.rating for row in rows]) for (step, option), rows in by_option.items())
    return sorted(itertools.chain.from_iterable(labels))


def _group_by_option(ratings: Iterable[OptionRating]) -> dict[tuple[int, int], list[OptionRating]]:
    by_option: dict[tuple[int, int], list[OptionRating]] = {}
    for row in ratings:
        by_option.setdefault((row.step, row.option), []).append(row)
    return by_option


def _label_before_error(step: int, at_risk: Sequence[int], probability: PlaceProbability) -> list[StepLabel]:
    counts = Counter(at_risk)
    if not counts[POSITIVE] + counts[NEUTRAL]:
        return []
    rating = POSITIVE if counts[POSITIVE] >= counts[NEUTRAL] else NEUTRAL
    return [StepLabel(step, 0, rating, probability.after(step), len(at_risk))]


def _majority_label(step: int, option: int, ratings: Sequence[int]) -> list[StepLabel]:
    ranked = Counter(ratings).most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return []
    return [StepLabel(step, option, ranked[0][0], ranked[0][1] / len(ratings), len(ratings))]
