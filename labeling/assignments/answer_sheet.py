"""What stands: everything that judging decides by, read of one assignment in one statement."""

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

_READ = rawsql.load_sql(__file__, "read.sql")
_LAST = 2**31 - 1  # above every position


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
    """A write of the history, as far as meeting another one goes."""

    client: str
    sequence: int
    seen: int
    version: int
    kind: str
    step: int
    option: int | None
    was_applied: bool


class AssignmentFacts(NamedTuple):
    """One row each of assignment, project, trace and rater."""

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

    def most_ms(self, now: dt.datetime) -> int:
        """Nobody was longer at a trace than it was in their hands, whatever their clock says. A little more is the
        rounding of two clocks, not a lie."""
        begun_at = self.held_at or self.opened_at
        return _MOST_MS if begun_at is None else int((now - begun_at + _SLACK) / _MS)


_MS, _SLACK = dt.timedelta(milliseconds=1), dt.timedelta(seconds=5)
_MOST_MS = 2**31 - 1


class AnswerSheet(NamedTuple):
    """The assignment with the steps that were asked for: their turns and judgments now, and the writes about them."""

    facts: AssignmentFacts
    steps: dict[int, StepRow]
    turns: dict[int, StepReviewRow]
    judgments: dict[tuple[int, int], JudgmentRow]
    history: tuple[HistoryEdit, ...]

    @property
    def is_closed(self) -> bool:
        """Submitted and not being corrected: what comes now is late."""
        return self.facts.state == AssignmentState.SUBMITTED and not self.facts.is_reopened

    @property
    def is_pregenerated(self) -> bool:
        return self.facts.trace_kind == TraceKind.PREGENERATED

    def rated(self) -> list[protocols.ProtocolStep]:
        """The steps as the protocol looks at them."""
        nothing = JudgmentRow()
        return [
            protocols.ProtocolStep(
                position,
                step.is_rateable,
                tuple(self.judgments.get((position, n), nothing).rating for n in range(len(step.options))),
            )
            for position, step in sorted(self.steps.items())
        ]


def load_answer_sheet(batch: EditBatch, *, steps: Collection[int] | None) -> AnswerSheet:
    """Read what is stored from the first to the last of these positions (None: at all positions), with the writes
    about them and those that the batch repeats."""
    first, last = (0, _LAST) if steps is None else (min(steps, default=0), max(steps, default=-1))
    found = rawsql.fetch_rows(
        _READ,
        {
            "assignment": batch.assignment_id,
            "rater": batch.rater_id,
            "first_step": first,
            "last_step": last,
            "client": batch.client,
            "sequences": [write.sequence for write in batch.writes],
        },
    )
    if not found:
        raise AssignmentUnknown
    *facts, step_rows, turn_rows, write_rows = found[0]
    return _build_answer_sheet(AssignmentFacts(*facts), _decoded(step_rows), _decoded(turn_rows), _decoded(write_rows))


def _build_answer_sheet(
    facts: AssignmentFacts, step_rows: Sequence[Any], turn_rows: Sequence[Any], write_rows: Sequence[Any]
) -> AnswerSheet:
    steps = {position: _step(pk, position, rateable, options) for pk, position, rateable, options in step_rows}
    turns, judgments = {}, {}
    for position, *turn, judged in turn_rows:
        turns[position] = StepReviewRow(*turn)
        for option, rating, flagged, category, reason in judged or ():
            judgments[position, option] = JudgmentRow(rating, flagged, category, reason)
    return AnswerSheet(facts, steps, turns, judgments, tuple(itertools.starmap(HistoryEdit, write_rows)))


def _step(pk: int, position: int, is_rateable: bool, options: Any) -> StepRow:
    return StepRow(pk, position, is_rateable, tuple(option for _, option in sorted(options or ())))


def _decoded(text: str | None) -> list[Any]:
    return orjson.loads(text) if text and text != "[]" else []
