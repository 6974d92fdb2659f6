"""Read from ratings where submissions saw the first error, for gold and consensus alike."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import orjson

import statements
from labeling.models.assignment import FinishReason

# These ended before the trace did: no error among what was rated, and nothing is known beyond.
CENSORED = (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM)


class Report(NamedTuple):
    """One revision of one assignment. `position` is that of the first step whose own text was rated negative."""

    assignment_id: int
    revision: int
    position: int | None
    n_passed: int  # rateable steps before it that were rated, or all that were rated where there is none
    finish_reason: str | None

    @property
    def is_censored(self) -> bool:
        return self.position is None and self.finish_reason in CENSORED


def of_revisions(revisions: Sequence[tuple[int, int]]) -> list[Report]:
    """Return a report for each (assignment, revision) that was submitted, in the order of both."""
    if not revisions:
        return []
    asked = orjson.dumps([list(pair) for pair in revisions]).decode()
    return list(itertools.starmap(Report, statements.rows(_REPORTS, {"revisions": asked})))


_REPORTS = statements.load_sql(__file__, "first_errors.sql")
