"""Counts how the two headline readings of each trace meet. Alone writes tallies.

Headline are the first two submissions of a trace that were scheduled before anybody's answer was known: work, made
here by members, first revision, nothing shown beforehand. Whatever else is submitted changes no row.

A trace is counted as a whole, from its ratings, by the statement of the submit: two readings are at most some dozens of
judgments, a count can be repeated without harm, and nothing that is added and taken away can drift. The caller holds
the trace's row, so that of two submits at the same moment the later one sees both.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import orjson
from django.db import connection, transaction

import statements
from labeling.models import Tally
from labeling.quality import settlements

_COLUMNS = (
    *("trace_id", "step_kind", "project_id", "problem_id", "generation", "first_id", "second_id", "first_rater_id"),
    *("second_rater_id", "guideline_id", "has_two_guidelines", "n_steps", "first_end", "second_end"),
    *("is_first_censored", "is_second_censored", "first_kind", "second_kind"),
    *("negative", "neutral", "positive", "negative_negative"),
    *("negative_neutral", "negative_positive", "neutral_neutral", "neutral_positive", "positive_positive"),
)
COUNTERS = _COLUMNS[18:]


def count(*, trace_id: int, now: dt.datetime) -> None:
    """Count a trace anew and mark it as due for settling. Inside the transaction that submits, with the trace held."""
    if statements.on_postgresql():
        statements.rows(_COUNT_ON_POSTGRESQL, [now, trace_id, trace_id])
        return
    statements.rows(_COUNT_ON_SQLITE, [trace_id])
    statements.rows(settlements.MARK, [connection.ops.adapt_datetimefield_value(now), trace_id])


def recount(*, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Hold the tallies of these traces against their ratings and put right what differs. Says of how many that was so.

    Held like in a submit, so that none of them is between its rating and its count."""
    with transaction.atomic():
        settlements.hold(trace_ids=trace_ids)
        wanted = _expected(trace_ids)
        stored = _stored(trace_ids)
        differing = sorted({key[0] for key in wanted.keys() | stored.keys() if wanted.get(key) != stored.get(key)})
        if differing:
            Tally.objects.filter(trace_id__in=differing).delete()
            _insert(differing)
    return len(differing)


def _expected(trace_ids: Sequence[int]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return _by_key(
        statements.rows(_SELECT_ON_POSTGRESQL if statements.on_postgresql() else _SELECT_ON_SQLITE, [_list(trace_ids)])
    )


def _stored(trace_ids: Sequence[int]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return _by_key(Tally.objects.filter(trace_id__in=trace_ids).values_list(*_COLUMNS))


def _by_key(rows: Any) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {tuple(row[:2]): tuple(row[2:]) for row in rows}


def _insert(trace_ids: Sequence[int]) -> None:
    statements.rows(_INSERT_ON_POSTGRESQL if statements.on_postgresql() else _INSERT_ON_SQLITE, [_list(trace_ids)])


def _list(trace_ids: Sequence[int]) -> Any:
    listed = sorted(trace_ids)
    return listed if statements.on_postgresql() else orjson.dumps(listed).decode()


def _units(name: str, n: int, low: int, high: int) -> str:
    return f"COUNT(CASE WHEN n = {n} AND low = {low} AND high = {high} THEN 1 END) AS {name}"


# What an option must look like to count in each of the counters: how many rated it, the lowest and highest rating.
_SHAPES = ((1, -1, -1), (1, 0, 0), (1, 1, 1), (2, -1, -1), (2, -1, 0), (2, -1, 1), (2, 0, 0), (2, 0, 1), (2, 1, 1))
_UNITS = ", ".join(_units(name, *shape) for name, shape in zip(COUNTERS, _SHAPES, strict=True))

# asked     the traces
# reading   their headline: the first two by number of submission, which are given out while the trace is held
# step      rateable steps with their place among themselves
# said      each rating with the reading and the place that it belongs to
# report    where each reading saw the first error: all steps for none, the steps rated where it was cut off
# met       an option's lowest and highest rating, and how many readings rated it
_WITH = """
asked AS (SELECT id AS trace_id, project_id, problem_id FROM labeling_trace WHERE id {among}),
submitted AS (
  SELECT a.trace_id, a.id, a.rater_id, a.guideline_id, a.draw_id,
    s.finish_reason IN ('give_up', 'bad_problem') AS was_cut_off,
    ROW_NUMBER() OVER (PARTITION BY a.trace_id ORDER BY s.id) AS turn
  FROM asked q
  JOIN labeling_assignment a ON a.trace_id = q.trace_id AND a.purpose = 'work' AND a.state = 'submitted'
    AND a.population = 'scheduled' AND a.origin = 'here' AND NOT a.is_assisted
  JOIN labeling_rater r ON r.id = a.rater_id AND r.kind = 'member'
  JOIN labeling_submission s ON s.assignment_id = a.id AND s.revision = 1),
reading AS (SELECT * FROM submitted WHERE turn <= 2),
step AS (
  SELECT st.trace_id, st.id, st.kind, ROW_NUMBER() OVER (PARTITION BY st.trace_id ORDER BY st.position) - 1 AS place,
    COUNT(*) OVER (PARTITION BY st.trace_id) AS n_steps
  FROM {steps} AND st.is_rateable),
said AS (
  SELECT x.trace_id, x.turn, st.kind, st.place, o.position AS option_place, j.option_id, j.rating
  FROM reading x
  JOIN labeling_turn u ON u.assignment_id = x.id AND u.revision = 1
  JOIN step st ON st.id = u.step_id
  JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
  JOIN labeling_option o ON o.id = j.option_id),
stopped AS (
  SELECT trace_id, turn, MIN(CASE WHEN rating = -1 THEN place END) AS place, COUNT(*) AS n_rated
  FROM said WHERE option_place = 0 GROUP BY trace_id, turn),
report AS (
  SELECT x.trace_id, x.turn, x.id, x.rater_id, x.guideline_id, x.draw_id,
    COALESCE(p.place, CASE WHEN x.was_cut_off THEN COALESCE(p.n_rated, 0)
                           ELSE (SELECT MAX(st.n_steps) FROM step st WHERE st.trace_id = x.trace_id) END) AS ends_at,
    p.place IS NULL AND x.was_cut_off AS is_censored,
    COALESCE((SELECT st.kind FROM step st WHERE st.trace_id = x.trace_id AND st.place = p.place), '') AS ends_on
  FROM reading x LEFT JOIN stopped p ON p.trace_id = x.trace_id AND p.turn = x.turn),
met AS (
  SELECT trace_id, kind, option_id, MIN(rating) AS low, MAX(rating) AS high, COUNT(*) AS n
  FROM said GROUP BY trace_id, kind, option_id),
counted AS (SELECT trace_id, kind, {units} FROM met GROUP BY trace_id, kind)
"""
_ROWS = """
SELECT c.trace_id, c.kind, q.project_id, q.problem_id, COALESCE(d.batch, 0), one.id, two.id, one.rater_id, two.rater_id,
  one.guideline_id, two.id IS NOT NULL AND COALESCE(one.guideline_id, 0) <> COALESCE(two.guideline_id, 0),
  (SELECT MAX(st.n_steps) FROM step st WHERE st.trace_id = c.trace_id), one.ends_at, two.ends_at, one.is_censored,
  two.is_censored, one.ends_on, COALESCE(two.ends_on, ''), {columns}
FROM counted c
JOIN asked q ON q.trace_id = c.trace_id
JOIN report one ON one.trace_id = c.trace_id AND one.turn = 1
LEFT JOIN report two ON two.trace_id = c.trace_id AND two.turn = 2
LEFT JOIN labeling_draw d ON d.id = one.draw_id
WHERE true"""

_ROWS = _ROWS.format(columns=", ".join(f"c.{name}" for name in COUNTERS))
_INTO = f"""INSERT INTO labeling_tally ({", ".join(_COLUMNS)}) {_ROWS}
ON CONFLICT (trace_id, step_kind) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[2:])}"""


# Joined, SQLite reads all steps there are for each submit, to sort out those of other traces beforehand.
_STEPS_ON_POSTGRESQL = "asked q JOIN labeling_step st ON st.trace_id = q.trace_id"
_STEPS_ON_SQLITE = "labeling_step st WHERE st.trace_id IN (SELECT trace_id FROM asked)"


def _statement(among: str, steps: str) -> tuple[str, str]:
    """The rows as they should be, and the same put into the table."""
    counted = _WITH.format(among=among, units=_UNITS, steps=steps)
    return f"WITH {counted} {_ROWS}", f"WITH {counted} {_INTO}"


_SELECT_ON_POSTGRESQL, _INSERT_ON_POSTGRESQL = _statement("= ANY (%s::bigint[])", _STEPS_ON_POSTGRESQL)
_SELECT_ON_SQLITE, _INSERT_ON_SQLITE = _statement("IN (SELECT value FROM json_each(%s))", _STEPS_ON_SQLITE)
# Of one trace, named by itself: PostgreSQL plans for ten of a list, and reads whole tables for them. A headline that
# has both its readings stays as it is.
_HAS_BOTH = "SELECT 1 FROM labeling_tally y WHERE y.trace_id = labeling_trace.id AND y.second_id IS NOT NULL"
_OF_ONE = f"= %s AND NOT EXISTS ({_HAS_BOTH})"
_COUNT_ON_SQLITE = _statement(_OF_ONE, _STEPS_ON_SQLITE)[1]
# One statement for both: a submit pays for each.
_COUNTED = _statement(_OF_ONE, _STEPS_ON_POSTGRESQL)[1].removeprefix("WITH ")
_COUNT_ON_POSTGRESQL = f"WITH due AS ({settlements.MARK_ON_POSTGRESQL}), {_COUNTED}"
