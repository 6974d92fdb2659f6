"""The answer sheet of an assignment: all that decides what an edit or a submit does, read in one statement."""

import datetime as dt
import itertools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import orjson

import rawsql
from labeling.assignments.edit_batch import EditBatch
from labeling.assignments.errors import AssignmentUnknown
from labeling.models.assignment import AssignmentState
from labeling.models.trace import TraceKind
from labeling.projects import protocols

_READ = rawsql.load_sql(__file__, "answer_sheet.sql")
_ALL_STEPS = (0, 2**31 - 1)
_MS, _CLOCK_TOLERANCE = dt.timedelta(milliseconds=1), dt.timedelta(seconds=5)
_MAX_MS = 2**31 - 1


class StepRow(NamedTuple):
    id: int
    position: int
    is_rateable: bool
    options: tuple[int, ...]  # ids by position


class StepReviewRow(NamedTuple):
    shown: str | None = None
    chosen: int | None = None
    written_text: str | None = None
    comment: str = ""
    active_ms: int | None = None


class JudgmentRow(NamedTuple):
    rating: int | None = None
    flagged: bool | None = None
    category: str = ""
    reason: str = ""


class HistoryEdit(NamedTuple):
    """An earlier edit, with the columns that a merge compares."""

    client: str
    sequence: int
    seen: int
    version: int
    kind: str
    step: int
    option: int | None
    was_applied: bool


class AssignmentFacts(NamedTuple):
    """Columns of assignment, project, trace and rater."""

    assignment: int
    project: int
    trace: int
    version: int
    state: str
    revision: int
    submitted_revision: int
    is_reopened: bool
    holds_slot: bool
    purpose: str
    protocol: str
    lease_seconds: int
    trace_kind: str
    is_removed: bool
    is_withdrawn: bool
    lease_ends_at: dt.datetime | None
    held_at: dt.datetime | None
    opened_at: dt.datetime | None

    def max_active_ms(self, now: dt.datetime) -> int:
        """Return the time since the assignment began: active time cannot be longer, whatever the client's clock says.
        Small differences between the two clocks are tolerated."""
        begun_at = self.held_at or self.opened_at
        return _MAX_MS if begun_at is None else int((now - begun_at + _CLOCK_TOLERANCE) / _MS)


class AnswerSheet(NamedTuple):
    """An assignment with the requested steps: their current reviews and judgments, and the earlier edits of them."""

    facts: AssignmentFacts
    steps: dict[int, StepRow]
    reviews: dict[int, StepReviewRow]
    judgments: dict[tuple[int, int], JudgmentRow]
    history: tuple[HistoryEdit, ...]

    @property
    def is_closed(self) -> bool:
        """Whether it is submitted and not being corrected, so that new edits are late."""
        return self.facts.state == AssignmentState.SUBMITTED and not self.facts.is_reopened

    @property
    def is_pregenerated(self) -> bool:
        return self.facts.trace_kind == TraceKind.PREGENERATED

    def protocol_steps(self) -> list[protocols.ProtocolStep]:
        unrated = JudgmentRow()
        return [
            protocols.ProtocolStep(
                position,
                step.is_rateable,
                tuple(self.judgments.get((position, n), unrated).rating for n in range(len(step.options))),
            )
            for position, step in sorted(self.steps.items())
        ]


def load_answer_sheet(batch: EditBatch, *, steps: Collection[int] | None) -> AnswerSheet:
    """Read the answer sheet from the first to the last of these positions (None: all), with the earlier edits of these
    steps and those that the batch repeats. Raises AssignmentUnknown."""
    first, last = _ALL_STEPS if steps is None else (min(steps, default=0), max(steps, default=-1))
    rows = rawsql.fetch_rows(
        _READ,
        {
            "assignment": batch.assignment_id,
            "rater": batch.rater_id,
            "first_step": first,
            "last_step": last,
            "client": batch.client,
            "sequences": [edit.sequence for edit in batch.edits],
        },
    )
    if not rows:
        raise AssignmentUnknown
    *facts, steps_json, reviews_json, edits_json = rows[0]
    return _build_answer_sheet(AssignmentFacts(*facts), _decode(steps_json), _decode(reviews_json), _decode(edits_json))


def _build_answer_sheet(
    facts: AssignmentFacts, step_rows: Sequence[Any], review_rows: Sequence[Any], edit_rows: Sequence[Any]
) -> AnswerSheet:
    steps = {
        position: StepRow(pk, position, is_rateable, tuple(option for _, option in sorted(options or ())))
        for pk, position, is_rateable, options in step_rows
    }
    reviews, judgments = {}, {}
    for position, *review, judgment_rows in review_rows:
        reviews[position] = StepReviewRow(*review)
        for option, rating, flagged, category, reason in judgment_rows or ():
            judgments[position, option] = JudgmentRow(rating, flagged, category, reason)
    return AnswerSheet(facts, steps, reviews, judgments, tuple(itertools.starmap(HistoryEdit, edit_rows)))


def _decode(text: str | None) -> list[Any]:
    return orjson.loads(text) if text and text != "[]" else []
