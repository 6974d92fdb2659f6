"""Taking a slot on PostgreSQL: lanes, entry, slot and assignment in one statement, which never waits for a lock."""

import datetime as dt
from contextlib import nullcontext

from django.db import IntegrityError, connection, transaction

import statements
from labeling.queue.lanes import BOTTOM, HELD_FOR, LANES, MAKE, NEXT, TWO_CLAIMS_MET, Taken

_ASKED_OF = ("lane_id", "key", "trace_id", "rater_id", "purpose", "attempt")
_NEXT = NEXT.format(**{name: f"lanes.{name}" for name in _ASKED_OF})
_ANY = NEXT.format(**{name: f"beside.{name}" for name in _ASKED_OF})
# The lanes come in their order, and the loop ends with the first that gives something: later ones are not looked at,
# unless it is gold.
_FOUND = f"""
SELECT lanes.*, e.entry_id, e.trace_id AS found_id, e.key AS found_key, e.draw_id
FROM lanes CROSS JOIN LATERAL ({{next}} {{lock}}) e
WHERE lanes.place IS NOT NULL AND NOT EXISTS (SELECT 1 FROM lanes held WHERE held.is_held)
  AND (lanes.arm <> 'gold' OR EXISTS (
    SELECT 1 FROM lanes beside CROSS JOIN LATERAL ({_ANY}) work
    WHERE beside.place IS NOT NULL AND beside.arm <> 'gold'))
LIMIT 1"""  # noqa: S608  made of constants
_VALUES = """
SELECT f.project_id, f.rater_id, f.found_id, f.lane_id, f.found_key, f.draw_id, f.purpose, f.attempt, 'here',
       f.population, CASE WHEN o.opened THEN 'opened' ELSE 'held' END, true, o.now, CASE WHEN o.opened THEN o.now END,
       o.now + CASE WHEN o.opened THEN f.lease_seconds * interval '1 second' ELSE o.held_for END, '',
       CASE WHEN o.opened THEN f.guideline_id END, CASE WHEN o.opened THEN f.shows_reference_answer END,
       CASE WHEN o.opened THEN f.shows_final_verdict END, false, 1, 0, 0
FROM found f, (SELECT CAST(%s AS boolean) AS opened, CAST(%s AS timestamptz) AS now, CAST(%s AS interval) AS held_for) o
"""
_LOOK = f"WITH {LANES} {_FOUND.format(next=_NEXT, lock='')}"

# NO KEY UPDATE lets foreign keys to the entry pass.
_TAKE = f"""
WITH {LANES},
found AS MATERIALIZED ({_FOUND.format(next=_NEXT, lock="FOR NO KEY UPDATE OF e SKIP LOCKED")}),
slot AS (UPDATE labeling_queueentry e SET slots_left = e.slots_left - 1 FROM found WHERE e.id = found.entry_id),
made AS ({MAKE.format(values=_VALUES)} RETURNING id, trace_id, purpose, state, lease_ends_at, draw_id)
SELECT made.id, made.trace_id, made.purpose, found.arm, made.state, made.lease_ends_at, made.draw_id,
       ARRAY(SELECT tried.lane_id FROM lanes tried WHERE tried.place < found.place AND tried.key >
             CASE WHEN tried.arm IN ('top_up', 'opinion') THEN tried.arrivals_until ELSE {BOTTOM} END)
FROM made, found
"""  # noqa: S608  made of constants


def take(*, parameters: list[object], now: dt.datetime, opened: bool) -> Taken | None:
    """The slot, or None. A statement is its own transaction; inside of one, its failure may not end the whole."""
    try:
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            rows = statements.rows(_TAKE, [*parameters, opened, now, HELD_FOR])
    except IntegrityError as error:
        if not any(name in str(error) for name in TWO_CLAIMS_MET):
            raise
        return None
    return Taken(*rows[0]) if rows else None


def is_anything_left(parameters: list[object]) -> bool:
    return bool(statements.rows(_LOOK, parameters))
