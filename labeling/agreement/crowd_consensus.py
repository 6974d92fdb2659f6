"""One label per task from the ratings of anybody's crowd, with its probability: majority, Dawid–Skene, first error."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labeling.agreement import crowd_reports, dawid_skene, first_error_dawid_skene, majority, ratings_file
from labeling.agreement.arrays import Floats, Ints
from labeling.agreement.ratings_file import Ratings
from labeling.agreement.scale import Scale
from labeling.agreement.votes import Votes

METHODS = ("majority", "dawid_skene", "first_error")


@dataclass(frozen=True)
class Settled:
    """The label of a task, how probable it is (for a majority: its share of the votes), and how many voted."""

    task: str
    label: str
    probability: float
    votes: int


def of_labels(ratings: Ratings, scale: Scale, labels: Ints, *, method: str) -> Iterator[Settled]:
    votes = Votes(ratings.tasks, ratings.workers, labels, len(scale.names))
    if method == "dawid_skene":
        ratings_file.check_size(labels=votes.k, others=votes.n_workers, called="workers", a_piece=votes.k**2)
        fit = dawid_skene.fit(votes)
        places, sure = fit.labels, fit.probabilities
    else:
        counted = majority.of_votes(votes)
        places, sure = counted.labels, counted.shares
    return _settled(ratings, [scale.names[place] for place in places.tolist()], sure)


def of_first_errors(ratings: Ratings) -> Iterator[Settled]:
    """Tasks are traces, labels 0-based places of the first error, -1 for none; see `crowd_reports` for the columns."""
    told = crowd_reports.of_ratings(ratings)
    fit = first_error_dawid_skene.fit(told)
    steps, sure = first_error_dawid_skene.most_likely(fit.posterior, fit.there)
    places = zip(steps.tolist(), told.lengths.tolist(), strict=True)
    return _settled(ratings, ["-1" if step == length else str(step) for step, length in places], sure)


def _settled(ratings: Ratings, labels: Sequence[str], sure: Floats) -> Iterator[Settled]:
    votes = [0] * len(ratings.task_names)
    for task in ratings.tasks.tolist():
        votes[task] += 1
    for row in zip(ratings.task_names, labels, sure.tolist(), votes, strict=True):
        yield Settled(*row)
