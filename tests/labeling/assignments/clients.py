"""Simulated browsers: they number their edits and remember the version that they have seen."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from labeling import assignments
from labeling.models import Assignment, Judgment, RatingEdit
from tests.factories import NOW


class WorkPageClient:
    """One browser window with one trace."""

    def __init__(self, assignment: Assignment, name: str = "window") -> None:
        self.assignment, self.name = assignment, name
        self.sequence, self.seen = 0, 0

    @property
    def place(self) -> dict[str, Any]:
        return {"assignment_id": self.assignment.pk, "rater_id": self.assignment.rater_id, "client": self.name}

    def write(
        self, step: int, rating: int | None = 1, *, kind: str = "rate", option: int | None = 0, **fields: Any
    ) -> assignments.IncomingEdit:
        self.sequence += 1
        fields = {"sequence": self.sequence, "seen": self.seen, **fields}
        return assignments.IncomingEdit(kind=kind, step=step, option=option, rating=rating, **fields)

    def comment(self, step: int, text: str) -> assignments.IncomingEdit:
        return self.write(step, None, kind="comment", option=None, text=text)

    def send(self, *writes: assignments.IncomingEdit, now: dt.datetime = NOW) -> assignments.RecordedBatch:
        recorded = assignments.record_edits(**self.place, writes=writes, now=now)
        self.seen = recorded.version
        return recorded

    def rate(self, ratings: Sequence[int], now: dt.datetime = NOW) -> assignments.RecordedBatch:
        """Rate the trace's own steps, from the first on."""
        return self.send(*(self.write(step, rating) for step, rating in enumerate(ratings)), now=now)


def current_ratings(assignment: Assignment, revision: int = 1) -> dict[tuple[int, int], int | None]:
    """Return the current ratings by step and option."""
    rows = Judgment.objects.filter(turn__assignment=assignment, turn__revision=revision)
    return {
        (step, option): rating
        for step, option, rating in rows.values_list("turn__step__position", "option__position", "rating")
    }


def rating_history(assignment: Assignment) -> list[tuple[str, int, bool]]:
    rows = RatingEdit.objects.filter(assignment=assignment).order_by("version", "sequence")
    return list(rows.values_list("client", "sequence", "was_applied"))
