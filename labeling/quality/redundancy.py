"""How many readings a trace needs. Pure: told what its readings say, it looks at nothing else.

Two readings, a third where the first errors differ, and so on up to the project's limit; then the trace is contested.
A place is settled when more than half of the readings that name one name it, and, where more than one was asked for,
at least two do. A reading that was cut off names none. One that came late, when its place was given to somebody else,
is heard like any other, and whoever has the place is waited for all the same. Expect contested traces: under "three of
at most five name the same step" ProcessBench gave up about 30 % of all it had (C. Zheng et al. 2024, arXiv:2412.06559).
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class ReadingVote(NamedTuple):
    """What one reading says of the first error: a position, or None for none; nothing where it was cut off."""

    first_error: int | None
    is_censored: bool = False
    has_bad_problem: bool = False
    is_extra: bool = False  # came when no slot was free


class ResolutionCourse(StrEnum):
    WAIT = "wait"  # for readings that are given out already
    ASK = "ask"  # for one more
    SETTLED = "settled"
    CONTESTED = "contested"


class WeighedVotes(NamedTuple):
    course: ResolutionCourse
    reason: str
    n_votes: int
    first_error: int | None = None  # of a settled one
    share: float = 0.0  # of the votes that name it
    differs_at: int | None = None  # the earliest step at which votes part


def weigh_votes(said: Sequence[ReadingVote], *, overlap: int, added: int) -> WeighedVotes:
    """`overlap` readings were given out from the start, `added` asked for since."""
    votes = [each.first_error for each in said if not each.is_censored]
    leading, n_leading = Counter(votes).most_common(1)[0] if votes else (None, 0)
    is_clear = len(votes) >= overlap and 2 * n_leading > len(votes) and n_leading >= min(2, overlap)
    if is_clear:
        reason = "all_agree" if n_leading == len(votes) else "most_agree"
        return WeighedVotes(
            ResolutionCourse.SETTLED, reason, len(votes), leading, n_leading / len(votes), _earliest_difference(votes)
        )
    if sum(each.has_bad_problem for each in said) >= 2:
        return WeighedVotes(
            ResolutionCourse.CONTESTED, "bad_problem", len(votes), differs_at=_earliest_difference(votes)
        )
    differs = len(set(votes)) > 1
    why = "differ" if differs else "cut_off"
    if is_reading_awaited(said, n_given_out=overlap + added):
        return WeighedVotes(
            ResolutionCourse.WAIT,
            why if added else "first_readings",
            len(votes),
            differs_at=_earliest_difference(votes),
        )
    return WeighedVotes(ResolutionCourse.ASK, why, len(votes), differs_at=_earliest_difference(votes))


def is_reading_awaited(said: Sequence[ReadingVote], *, n_given_out: int) -> bool:
    """Whether a reading is still to come."""
    return sum(not each.is_extra for each in said) < n_given_out


def accept_by_probability(
    weighed: WeighedVotes,
    said: Sequence[ReadingVote],
    *,
    leading: int | None,
    probability: float,
    threshold: float,
    is_asked: bool,
) -> WeighedVotes:
    """The same where a project settles by probability: the place that leads is accepted from the threshold on, whoever
    named it, and nothing is below, though all agree: unanimity is no proof. `is_asked`: a reading is still to come."""
    if weighed.course == ResolutionCourse.WAIT or weighed.reason == "bad_problem":
        return weighed
    votes = [each.first_error for each in said if not each.is_censored]
    if probability >= threshold and votes:
        return weighed._replace(
            course=ResolutionCourse.SETTLED,
            reason="accepted",
            first_error=leading,
            share=votes.count(leading) / len(votes),
        )
    if weighed.course == ResolutionCourse.SETTLED:
        course = ResolutionCourse.WAIT if is_asked else ResolutionCourse.ASK
        return weighed._replace(course=course, reason="doubtful", differs_at=_earliest_difference(votes))
    return weighed


def _earliest_difference(votes: Sequence[int | None]) -> int | None:
    """At the earliest step that some call the first error, the others had gone on."""
    named = [vote for vote in votes if vote is not None]
    return min(named) if len(set(votes)) > 1 else None
