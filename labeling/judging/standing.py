"""What stands: everything that judging decides by, read of one assignment in one statement."""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson

import statements
from labeling import protocols
from labeling.judging.errors import AssignmentUnknown
from labeling.judging.writes import Batch
from labeling.models.assignment import AssignmentState
from labeling.models.trace import TraceKind


class StepRow(NamedTuple):
    id: int
    position: int
    is_rateable: bool
    options: tuple[int, ...]  # ids by position


class TurnRow(NamedTuple):
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


class Known(NamedTuple):
    """A write of the history, as far as meeting another one goes."""

    client: str
    sequence: int
    seen: int
    version: int
    kind: str
    step: int
    option: int | None
    was_applied: bool


class Facts(NamedTuple):
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


class Standing(NamedTuple):
    """The assignment with the steps that were asked for: their turns and judgments now, and the writes about them."""

    facts: Facts
    steps: dict[int, StepRow]
    turns: dict[int, TurnRow]
    judgments: dict[tuple[int, int], JudgmentRow]
    history: tuple[Known, ...]

    @property
    def is_closed(self) -> bool:
        """Submitted and not being corrected: what comes now is late."""
        return self.facts.state == AssignmentState.SUBMITTED and not self.facts.is_reopened

    @property
    def is_pregenerated(self) -> bool:
        return self.facts.trace_kind == TraceKind.PREGENERATED

    def rated(self) -> list[protocols.Rated]:
        """The steps as the protocol looks at them."""
        nothing = JudgmentRow()
        return [
            protocols.Rated(
                position,
                step.is_rateable,
                tuple(self.judgments.get((position, n), nothing).rating for n in range(len(step.options))),
            )
            for position, step in sorted(self.steps.items())
        ]


def read(batch: Batch, *, steps: Iterable[int] | None) -> Standing:
    """What stands at these positions (None: at all), with the writes about them and those that the batch repeats."""
    sql, parameters = _whole() if steps is None else _at(set(steps), batch)
    found = statements.rows(sql, (*parameters, batch.assignment_id, batch.rater_id))
    if not found:
        raise AssignmentUnknown
    *facts, step_rows, turn_rows, write_rows = found[0]
    return _standing(_facts(facts), _decoded(step_rows), _decoded(turn_rows), _decoded(write_rows))


def _whole() -> statements.Statement:
    return (_ON_POSTGRESQL if statements.on_postgresql() else _ON_SQLITE).whole, ()


def _at(steps: set[int], batch: Batch) -> statements.Statement:
    """A rating is often alone, and SQLite finds one number faster than a list of one."""
    if len(batch.writes) == 1 and not statements.on_postgresql():
        return _ON_SQLITE.one, (*list(steps) * 3, batch.client, batch.writes[0].sequence)
    places, sequences = statements.listed(steps), statements.listed(write.sequence for write in batch.writes)
    texts = _ON_POSTGRESQL if statements.on_postgresql() else _ON_SQLITE
    return texts.some, (places, places, places, batch.client, sequences)


def _standing(facts: Facts, step_rows: Sequence[Any], turn_rows: Sequence[Any], write_rows: Sequence[Any]) -> Standing:
    steps = {position: _step(pk, position, rateable, options) for pk, position, rateable, options in step_rows}
    turns, judgments = {}, {}
    for position, *turn, judged in turn_rows:
        turns[position] = TurnRow(*turn)
        for option, rating, flagged, category, reason in judged or ():
            judgments[position, option] = JudgmentRow(rating, _bool(flagged), category, reason)
    return Standing(facts, steps, turns, judgments, tuple(map(_known, write_rows)))


def _step(pk: int, position: int, is_rateable: Any, options: Any) -> StepRow:
    return StepRow(pk, position, bool(is_rateable), tuple(option for _, option in sorted(options or ())))


def _known(row: Sequence[Any]) -> Known:
    client, sequence, seen, version, kind, step, option, was_applied = row
    return Known(client, sequence, seen, version, kind, step, option, bool(was_applied))


def _facts(found: list[Any]) -> Facts:
    """SQLite has neither booleans nor times with a zone: it keeps 0 and 1, and times in UTC that do not say so."""
    for place in _FLAGS:
        found[place] = bool(found[place])
    found[-3:] = map(statements.in_utc, found[-3:])
    return Facts(*found)


_FLAGS = [place for place, kind in enumerate(Facts.__annotations__.values()) if kind is bool]


def _bool(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _decoded(text: str | None) -> list[Any]:
    return orjson.loads(text) if text and text != "[]" else []


# One text for both engines: they differ in how rows become JSON and in how a list is looked into.
_READ = """
SELECT a.id, a.project_id, a.trace_id, a.version, a.state, a.revision, a.submitted_revision,
  a.reopened_at IS NOT NULL, a.holds_slot, a.purpose, p.protocol, p.lease_seconds, t.kind,
  r.removed_at IS NOT NULL, t.withdrawn_at IS NOT NULL, a.lease_ends_at, a.held_at, a.opened_at,
  (SELECT {rows}({row}(s.id, s.position, s.is_rateable,
     (SELECT {rows}({row}(o.position, o.id)) FROM labeling_option o WHERE o.step_id = s.id))){text}
   FROM labeling_step s WHERE s.trace_id = a.trace_id {at_steps}),
  (SELECT {rows}({row}(s.position, u.shown, u.chosen, u.written_text, u.comment, u.active_ms,
     (SELECT {rows}({row}(o.position, j.rating, j.flagged, j.category, j.reason))
      FROM labeling_judgment j JOIN labeling_option o ON o.id = j.option_id WHERE j.turn_id = u.id))){text}
   FROM labeling_turn u JOIN labeling_step s ON s.id = u.step_id
   WHERE u.assignment_id = a.id AND u.revision = a.revision {at_steps}),
  (SELECT {rows}({row}(w.client, w.sequence, w.seen, w.version, w.kind, w.step, w.option, w.was_applied)){text}
   FROM labeling_write w WHERE w.assignment_id = a.id {of_writes})
FROM labeling_assignment a
JOIN labeling_project p ON p.id = a.project_id
JOIN labeling_trace t ON t.id = a.trace_id
JOIN labeling_rater r ON r.id = a.rater_id
WHERE a.id = %s AND a.rater_id = %s"""


class _Texts(NamedTuple):
    """How much is read: all, what some places hold, what one holds."""

    whole: str
    some: str
    one: str


def _texts(*, among: str, **words: str) -> _Texts:
    def text(among: str) -> str:
        of_writes = f"AND (w.step {among} OR w.client = %s AND w.sequence {among})"
        return _READ.format(at_steps=f"AND s.position {among}", of_writes=of_writes, **words)

    return _Texts(_READ.format(at_steps="", of_writes="", **words), text(among), text("= %s"))


_ON_POSTGRESQL = _texts(rows="json_agg", row="json_build_array", text="::text", among="= ANY (%s::bigint[])")
_ON_SQLITE = _texts(rows="json_group_array", row="json_array", text="", among="IN (SELECT value FROM json_each(%s))")
