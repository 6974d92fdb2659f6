"""What each protocol asks of a rater before a submit, and what it then ends with. Pure rules: told the steps and their
ratings, they look at nothing else."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models.assignment import FinishReason
from labeling.models.project import Protocol

NEGATIVE = -1


class ProtocolStep(NamedTuple):
    """A step with the rating of each of its options, by position; option 0 is the trace's own."""

    position: int
    is_rateable: bool
    ratings: tuple[int | None, ...]


class MissingRating(NamedTuple):
    """Where a rating stands or is missing. Positions count from 0; people count from 1."""

    step: int
    option: int


def find_first_negative(steps: Sequence[ProtocolStep]) -> int | None:
    """The position of the first step whose own text is rated negative."""
    return next((step.position for step in _steps_to_rate(steps) if step.ratings[0] == NEGATIVE), None)


def find_end(protocol: str, steps: Sequence[ProtocolStep]) -> int | None:
    """The position after which nothing is part of a submission. None: it goes to the end of the trace."""
    return find_first_negative(steps) if protocol == Protocol.FIRST_ERROR else None


def find_missing_ratings(protocol: str, steps: Sequence[ProtocolStep]) -> list[MissingRating]:
    """What is still to be rated, in the order of the trace."""
    if protocol == Protocol.LIVE:
        return []
    end = find_end(protocol, steps)
    path = [MissingRating(step.position, 0) for step in _steps_to_rate(steps, until=end) if step.ratings[0] is None]
    return path + list(_missing_alternatives(steps, end))


def derive_finish_reason(protocol: str, steps: Sequence[ProtocolStep]) -> FinishReason:
    """What a submission with nothing missing ended with."""
    return FinishReason.SOLUTION if find_end(protocol, steps) is None else FinishReason.FOUND_ERROR


def submit_button_text(protocol: str, steps: Sequence[ProtocolStep]) -> str:
    """What the submit button says: what is missing, or what will be said."""
    end = find_end(protocol, steps)
    lacking = find_missing_ratings(protocol, steps)
    if lacking:
        return _missing_text(protocol, lacking, end)
    if end is not None:
        return _("Submit: first error at step %(step)d") % {"step": end + 1}
    return _("Submit: no error found") if protocol == Protocol.FIRST_ERROR else _("Submit")


def _missing_text(protocol: str, lacking: Sequence[MissingRating], end: int | None) -> str:
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


def _steps_to_rate(steps: Sequence[ProtocolStep], until: int | None = None) -> Iterator[ProtocolStep]:
    """The steps that are to be rated, up to a position."""
    for step in steps:
        if step.is_rateable and step.ratings and (until is None or step.position <= until):
            yield step


def _missing_alternatives(steps: Sequence[ProtocolStep], at: int | None) -> Iterator[MissingRating]:
    """The unrated other options of the step where the first error was found."""
    for step in steps:
        if step.position == at:
            yield from (
                MissingRating(step.position, option)
                for option, rating in enumerate(step.ratings)
                if option and rating is None
            )
