"""What each protocol asks of a rater before a submit, and what it then ends with. Pure rules: told the steps and their
ratings, they look at nothing else."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models.assignment import FinishReason
from labeling.models.project import Protocol

NEGATIVE = -1


class Rated(NamedTuple):
    """A step with the rating of each of its options, by position; option 0 is the trace's own."""

    position: int
    is_rateable: bool
    ratings: tuple[int | None, ...]


class Place(NamedTuple):
    """Where a rating stands or is missing. Positions count from 0; people count from 1."""

    step: int
    option: int


def first_negative(steps: Sequence[Rated]) -> int | None:
    """The position of the first step whose own text is rated negative."""
    return next((step.position for step in _asked(steps) if step.ratings[0] == NEGATIVE), None)


def ends_at(protocol: str, steps: Sequence[Rated]) -> int | None:
    """The position after which nothing is part of a submission. None: it goes to the end of the trace."""
    return first_negative(steps) if protocol == Protocol.FIRST_ERROR else None


def missing(protocol: str, steps: Sequence[Rated]) -> list[Place]:
    """What is still to be rated, in the order of the trace."""
    if protocol == Protocol.LIVE:
        return []
    end = ends_at(protocol, steps)
    path = [Place(step.position, 0) for step in _asked(steps, until=end) if step.ratings[0] is None]
    return path + list(_alternatives(steps, end))


def finish_reason(protocol: str, steps: Sequence[Rated]) -> FinishReason:
    """What a submission with nothing missing ended with."""
    return FinishReason.SOLUTION if ends_at(protocol, steps) is None else FinishReason.FOUND_ERROR


def button(protocol: str, steps: Sequence[Rated]) -> str:
    """What the submit button says: what is missing, or what will be said."""
    end = ends_at(protocol, steps)
    lacking = missing(protocol, steps)
    if lacking:
        return _what_is_missing(protocol, lacking, end)
    if end is not None:
        return _("Submit: first error at step %(step)d") % {"step": end + 1}
    return _("Submit: no error found") if protocol == Protocol.FIRST_ERROR else _("Submit")


def _what_is_missing(protocol: str, lacking: Sequence[Place], end: int | None) -> str:
    if end is None:
        if protocol == Protocol.FIRST_ERROR:
            return _("Find the first negative, or rate %(count)d more") % {"count": len(lacking)}
        return ngettext("Rate %(count)d more step", "Rate %(count)d more steps", len(lacking)) % {"count": len(lacking)}
    before = sum(place.step < end for place in lacking)
    if before:
        return ngettext(
            "Rate %(count)d more step before step %(step)d", "Rate %(count)d more steps before step %(step)d", before
        ) % {"count": before, "step": end + 1}
    return ngettext(
        "Rate %(count)d more alternative to step %(step)d",
        "Rate %(count)d more alternatives to step %(step)d",
        len(lacking),
    ) % {"count": len(lacking), "step": end + 1}


def _asked(steps: Sequence[Rated], until: int | None = None) -> Iterator[Rated]:
    """The steps that are to be rated, up to a position."""
    for step in steps:
        if step.is_rateable and step.ratings and (until is None or step.position <= until):
            yield step


def _alternatives(steps: Sequence[Rated], at: int | None) -> Iterator[Place]:
    """The unrated other options of the step where the first error was found."""
    for step in steps:
        if step.position == at:
            yield from (
                Place(step.position, option) for option, rating in enumerate(step.ratings) if option and rating is None
            )
