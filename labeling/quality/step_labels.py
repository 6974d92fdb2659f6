"""Step labels that follow from a consensus on the first error. Pure.

Before the first error a step has the label of the raters who were still at risk there, at it -1, behind it none: what
survivors say there is right in a quarter of all cases. Under "every step" each option has what most of its raters say.
A tie is no label. Alternatives of the step at which the path ended are labelled like any option of every step.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

NEGATIVE, NEUTRAL, POSITIVE = -1, 0, 1


class OptionRating(NamedTuple):
    """One rating, with where its rater saw the first error."""

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
    """How probably the first error is at a step, and behind it."""

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
    sure: PlaceProbability | None = None,
) -> list[StepLabel]:
    """`votes` are the places named by the readings that were not cut off; None is "no error". Where more is known than
    votes, `sure` gives P(E = step) and P(E > step); else their shares of the votes stand for those."""
    sure = sure or PlaceProbability.of_votes(votes)
    by_option = _group_by_option(each for each in ratings if first_error is None or each.step <= first_error)
    labels = []
    for (step, option), rated in by_option.items():
        at_risk = [each.rating for each in rated if each.first_error is None or each.first_error >= step]
        if option:
            labels += _majority_label(step, option, at_risk)
        elif step == first_error:
            labels.append(StepLabel(step, 0, NEGATIVE, sure.at(step), len(at_risk)))
        else:
            labels += _label_before_error(step, at_risk, sure)
    return sorted(labels)


def labels_from_every_step(ratings: Iterable[OptionRating]) -> list[StepLabel]:
    found = (
        _majority_label(*place, [each.rating for each in rated]) for place, rated in _group_by_option(ratings).items()
    )
    return sorted(label for labels in found for label in labels)


def _group_by_option(ratings: Iterable[OptionRating]) -> dict[tuple[int, int], list[OptionRating]]:
    found: dict[tuple[int, int], list[OptionRating]] = {}
    for each in ratings:
        found.setdefault((each.step, each.option), []).append(each)
    return found


def _label_before_error(step: int, at_risk: Sequence[int], sure: PlaceProbability) -> list[StepLabel]:
    counted = Counter(at_risk)
    if not counted[POSITIVE] + counted[NEUTRAL]:
        return []
    rating = POSITIVE if counted[POSITIVE] >= counted[NEUTRAL] else NEUTRAL
    return [StepLabel(step, 0, rating, sure.after(step), len(at_risk))]


def _majority_label(step: int, option: int, rated: Sequence[int]) -> list[StepLabel]:
    ranked = Counter(rated).most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return []
    return [StepLabel(step, option, ranked[0][0], ranked[0][1] / len(rated), len(rated))]
