"""Puts into the tables what a meeting made: the history's new rows, turns, judgments, and the assignment's new version.

The only module that writes these rows while somebody works. The first message for a trace that was fetched ahead opens
it, and with it fixes what guides the rater and what can be seen.

PostgreSQL takes one statement, which does nothing when the assignment is no longer as it was read; SQLite takes a few
inside a transaction that holds its one write lock.
"""

import datetime as dt
import functools
from typing import Any

import orjson

import statements
from labeling.judging.meeting import Arrival, Meeting
from labeling.judging.standing import JudgmentRow, Standing, TurnRow
from labeling.models.assignment import AssignmentState

RENEWED_EVERY = dt.timedelta(minutes=1)


def keep(*, standing: Standing, meeting: Meeting, client: str, now: dt.datetime) -> int | None:
    """Keep what came. Gives the assignment's new version; None when the assignment has moved since it was read, and
    then nothing is kept. Call it inside a transaction, unless the engine is PostgreSQL."""
    if not meeting.arrivals and standing.facts.state != AssignmentState.HELD:
        return standing.facts.version
    keep_here = _keep_in_one_statement if statements.on_postgresql() else _keep_in_several
    return keep_here(standing, meeting, client, now)


def correct(*, standing: Standing, turns: dict[int, TurnRow], now: dt.datetime) -> None:
    """Put these turns in place of what stands, as part of something that moves the assignment itself."""
    for position, turn in turns.items():
        statements.rows(_CORRECT, [turn.shown, turn.chosen, *_place(standing, position)])


def lease_end(standing: Standing, now: dt.datetime) -> dt.datetime | None:
    """Until when this activity keeps the trace in the rater's hands; None where it is not in them. A lease that was
    renewed a moment ago stays: its end stands in an index, and PostgreSQL writes a row whose indexed columns stay the
    same without touching any index."""
    facts = standing.facts
    if facts.state not in (AssignmentState.HELD, AssignmentState.OPENED):
        return None
    lease, fresh = _lease(facts.lease_seconds)
    stays = facts.lease_ends_at is not None and facts.lease_ends_at > now + fresh
    return facts.lease_ends_at if stays else now + lease


@functools.cache
def _lease(seconds: int) -> tuple[dt.timedelta, dt.timedelta]:
    """How long it is, and how much of it is left where it was renewed a moment ago."""
    lease = dt.timedelta(seconds=seconds)
    return lease, lease - min(RENEWED_EVERY, lease / 10)


def _keep_in_one_statement(standing: Standing, meeting: Meeting, client: str, now: dt.datetime) -> int | None:
    facts = standing.facts
    content = {
        "writes": [_write_columns(arrival, standing) for arrival in meeting.arrivals],
        "turns": [_turn_columns(standing, *item) for item in meeting.turns.items()],
        "judgments": [_judgment_columns(standing, *item) for item in meeting.judgments.items()],
    }
    found = statements.rows(
        _ONE_STATEMENT,
        [
            *(facts.assignment, facts.version, facts.state, facts.revision, facts.submitted_revision),
            *(facts.is_reopened, orjson.dumps(content).decode(), client, now, now, lease_end(standing, now)),
        ],
    )
    return found[0][0] if found else None


def _write_columns(arrival: Arrival, standing: Standing) -> dict[str, Any]:
    write = arrival.write
    return {
        "sequence": write.sequence,
        "seen": arrival.seen,
        "kind": write.kind,
        "step": write.step,
        "option": write.option,
        "rating": write.rating,
        "flagged": write.flagged,
        "category": write.category,
        "text": write.text,
        "active_ms": write.active_ms,
        "made_at": write.made_at,
        "was_late": standing.is_closed,
        "was_applied": arrival.was_applied,
    }


def _turn_columns(standing: Standing, position: int, turn: TurnRow) -> dict[str, Any]:
    return {"step_id": standing.steps[position].id, **turn._asdict()}


def _judgment_columns(standing: Standing, place: tuple[int, int], judgment: JudgmentRow) -> dict[str, Any]:
    step = standing.steps[place[0]]
    return {"step_id": step.id, "option_id": step.options[place[1]], **judgment._asdict()}


# The assignment is locked only if it still is as it was read: otherwise `mine` is empty, and so is everything else.
# A judgment finds its turn among those that the same statement made: whatever is rated has its turn in the batch.
_ONE_STATEMENT = """
WITH mine AS MATERIALIZED (
  SELECT id, version + 1 AS version, revision, state, project_id FROM labeling_assignment
  WHERE id = %s AND version = %s AND state = %s AND revision = %s AND submitted_revision = %s
    AND (reopened_at IS NOT NULL) = %s::boolean FOR NO KEY UPDATE),
content AS MATERIALIZED (SELECT %s::json AS it),
written AS (
  INSERT INTO labeling_write (assignment_id, client, version, revision, arrived_at, sequence, seen, kind, step, option,
    rating, flagged, category, text, active_ms, made_at, was_late, was_applied)
  SELECT mine.id, %s, mine.version, mine.revision, %s, w.* FROM mine, content, json_to_recordset(content.it -> 'writes')
    AS w(sequence int, seen int, kind text, step int, option int, rating int, flagged boolean, category text, text text,
         active_ms int, made_at timestamptz, was_late boolean, was_applied boolean)),
turned AS (
  INSERT INTO labeling_turn (assignment_id, revision, step_id, shown, chosen, written_text, comment, active_ms)
  SELECT mine.id, mine.revision, u.* FROM mine, content, json_to_recordset(content.it -> 'turns')
    AS u(step_id bigint, shown text, chosen int, written_text text, comment text, active_ms int)
  ON CONFLICT (assignment_id, revision, step_id) DO UPDATE SET shown = excluded.shown, chosen = excluded.chosen,
    written_text = excluded.written_text, comment = excluded.comment, active_ms = excluded.active_ms
  RETURNING id, step_id),
judged AS (
  INSERT INTO labeling_judgment (turn_id, option_id, rating, flagged, category, reason)
  SELECT turned.id, j.option_id, j.rating, j.flagged, j.category, j.reason
  FROM content, json_to_recordset(content.it -> 'judgments')
    AS j(step_id bigint, option_id bigint, rating int, flagged boolean, category text, reason text)
  JOIN turned USING (step_id)
  ON CONFLICT (turn_id, option_id) DO UPDATE SET rating = excluded.rating, flagged = excluded.flagged,
    category = excluded.category, reason = excluded.reason)
UPDATE labeling_assignment a SET version = mine.version,
  state = CASE WHEN a.state = 'held' THEN 'opened' ELSE a.state END,
  opened_at = CASE WHEN a.state = 'held' THEN %s ELSE a.opened_at END,
  guideline_id = CASE WHEN a.state = 'held' THEN p.guideline_id ELSE a.guideline_id END,
  saw_reference_answer = CASE WHEN a.state = 'held' THEN p.shows_reference_answer ELSE a.saw_reference_answer END,
  saw_final_verdict = CASE WHEN a.state = 'held' THEN p.shows_final_verdict ELSE a.saw_final_verdict END,
  lease_ends_at = COALESCE(%s, a.lease_ends_at)
FROM mine JOIN labeling_project p ON p.id = mine.project_id WHERE a.id = mine.id RETURNING a.version"""


def _keep_in_several(standing: Standing, meeting: Meeting, client: str, now: dt.datetime) -> int:
    facts = standing.facts
    version = facts.version + 1
    head = (facts.assignment, client, version, facts.revision, statements.moment(now), standing.is_closed)
    writes = [head + _write_values(each) for each in meeting.arrivals]
    turns = [_place(standing, position) + turn for position, turn in meeting.turns.items()]
    judgments = [_judgment_values(standing, *item) for item in meeting.judgments.items()]
    statements.several(
        [
            *statements.of_rows(_WRITE, _WRITE_ROW, writes),
            *statements.of_rows(_TURN, _TURN_ROW, turns),
            *statements.of_rows(_JUDGMENT, _JUDGMENT_ROW, judgments),
            _moved(standing, version, now),
        ]
    )
    return version


def _moved(standing: Standing, version: int, now: dt.datetime) -> statements.Statement:
    facts, ends_at = standing.facts, lease_end(standing, now)
    if facts.state != AssignmentState.HELD and ends_at in (None, facts.lease_ends_at):
        return _VERSION, (version, facts.assignment)
    return _ASSIGNMENT, (version, statements.moment(now), statements.moment(ends_at), facts.assignment)


def _write_values(arrival: Arrival) -> tuple[Any, ...]:
    write, seen, was_applied = arrival
    return (
        *(write.sequence, seen, write.kind, write.step, write.option, write.rating, write.flagged, write.category),
        *(write.text, write.active_ms, statements.moment(write.made_at), was_applied),
    )


def _judgment_values(standing: Standing, place: tuple[int, int], judgment: JudgmentRow) -> tuple[Any, ...]:
    position, option = place
    return (standing.steps[position].options[option], *judgment, *_place(standing, position))


def _place(standing: Standing, position: int) -> tuple[int, int, int]:
    """What a turn is known by."""
    return standing.facts.assignment, standing.facts.revision, standing.steps[position].id


_CORRECT = """
UPDATE labeling_turn SET shown = %s, chosen = %s WHERE assignment_id = %s AND revision = %s AND step_id = %s"""

_WRITE = """
INSERT INTO labeling_write (assignment_id, client, version, revision, arrived_at, was_late, sequence, seen, kind, step,
  option, rating, flagged, category, text, active_ms, made_at, was_applied) VALUES {rows}"""
_WRITE_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"

_TURN = """
INSERT INTO labeling_turn (assignment_id, revision, step_id, shown, chosen, written_text, comment, active_ms)
VALUES {rows}
ON CONFLICT (assignment_id, revision, step_id) DO UPDATE SET shown = excluded.shown, chosen = excluded.chosen,
  written_text = excluded.written_text, comment = excluded.comment, active_ms = excluded.active_ms"""
_TURN_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s)"

_JUDGMENT = """
INSERT INTO labeling_judgment (option_id, rating, flagged, category, reason, turn_id) VALUES {rows}
ON CONFLICT (turn_id, option_id) DO UPDATE SET rating = excluded.rating, flagged = excluded.flagged,
  category = excluded.category, reason = excluded.reason"""
_JUDGMENT_ROW = """(%s, %s, %s, %s, %s,
  (SELECT id FROM labeling_turn WHERE assignment_id = %s AND revision = %s AND step_id = %s))"""

# SQLite writes an index anew when its column is named, whether or not it changes.
_VERSION = "UPDATE labeling_assignment SET version = %s WHERE id = %s"

_ASSIGNMENT = """
UPDATE labeling_assignment AS a SET version = %s,
  opened_at = CASE WHEN a.state = 'held' THEN %s ELSE a.opened_at END,
  state = CASE WHEN a.state = 'held' THEN 'opened' ELSE a.state END,
  guideline_id = CASE WHEN a.state = 'held' THEN p.guideline_id ELSE a.guideline_id END,
  saw_reference_answer = CASE WHEN a.state = 'held' THEN p.shows_reference_answer ELSE a.saw_reference_answer END,
  saw_final_verdict = CASE WHEN a.state = 'held' THEN p.shows_final_verdict ELSE a.saw_final_verdict END,
  lease_ends_at = COALESCE(%s, a.lease_ends_at)
FROM labeling_project p WHERE p.id = a.project_id AND a.id = %s"""
