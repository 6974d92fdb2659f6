"""Marks traces as due for settling, holds them, and reads where they stand. With `settling` and `adjudication` the only
module that changes settlements."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence

import orjson

import statements
from labeling.models import Settlement, Trace
from labeling.models.consensus import SettlementState

_UNSETTLED = (SettlementState.READING, SettlementState.ASKED, SettlementState.CONTESTED)

# The marks of a submit: its trace is looked at by the next settling.
MARK = """
INSERT INTO labeling_settlement (trace_id, project_id, state, reason, n_readings, n_votes, consensus_revision,
  changed_at, is_due)
SELECT t.id, t.project_id, 'reading', '', 0, 0, 0, %s, true FROM labeling_trace t WHERE t.id = %s
ON CONFLICT (trace_id) DO UPDATE SET is_due = true"""
MARK_ON_POSTGRESQL = MARK.replace("%s, true", "%s::timestamptz, true")

# The same of all that a chunk of an import brought, held as by a submit.
_MARK_MANY = """
WITH held AS (SELECT id, project_id FROM labeling_trace WHERE id {among})
INSERT INTO labeling_settlement (trace_id, project_id, state, reason, n_readings, n_votes, consensus_revision,
  changed_at, is_due)
SELECT t.id, t.project_id, 'reading', '', 0, 0, 0, {now}, true FROM held t WHERE true
ON CONFLICT (trace_id) DO UPDATE SET is_due = true"""
_MARK_MANY_ON_SQLITE = _MARK_MANY.format(among="IN (SELECT value FROM json_each(%s))", now="%s")
_MARK_MANY_ON_POSTGRESQL = _MARK_MANY.format(
    among="= ANY (%s::bigint[]) ORDER BY id FOR NO KEY UPDATE", now="%s::timestamptz"
)


# What came in with fewer ratings than were asked for then, and has enough of them now.
_MARK_ENOUGH = """
INSERT INTO labeling_settlement (trace_id, project_id, state, reason, n_readings, n_votes, consensus_revision,
  changed_at, is_due)
SELECT t.id, t.project_id, 'reading', '', 0, 0, 0, {now}, true FROM labeling_trace t
WHERE t.id {among} AND t.kind = 'pregenerated'
  AND NOT EXISTS (SELECT 1 FROM labeling_settlement s WHERE s.trace_id = t.id)
  AND (SELECT COUNT(*) FROM labeling_assignment a JOIN labeling_rater r ON r.id = a.rater_id AND r.kind <> 'machine'
    WHERE a.trace_id = t.id AND a.purpose = 'work' AND a.state = 'submitted' AND NOT a.is_assisted) >= %s
ON CONFLICT (trace_id) DO NOTHING"""
_MARK_ENOUGH_ON_SQLITE = _MARK_ENOUGH.format(among="IN (SELECT value FROM json_each(%s))", now="%s")
_MARK_ENOUGH_ON_POSTGRESQL = _MARK_ENOUGH.format(among="= ANY (%s::bigint[])", now="%s::timestamptz")


def mark_read_enough(*, trace_ids: Iterable[int], overlap: int, now: dt.datetime) -> None:
    """The project asks for another number of readings: of these traces, those that came in with so many are due too.
    Ratings of a file are opinions given; nobody looked at them while they were too few. One statement for all."""
    listed = sorted(trace_ids)
    if statements.on_postgresql():
        statements.rows(_MARK_ENOUGH_ON_POSTGRESQL, [now, listed, overlap])
    else:
        statements.rows(_MARK_ENOUGH_ON_SQLITE, [statements.moment(now), orjson.dumps(listed).decode(), overlap])


def mark_brought_in(*, trace_ids: Iterable[int], now: dt.datetime) -> None:
    """Mark as due what came in with its labels; inside the transaction that brings them. One statement for all."""
    listed = sorted(trace_ids)
    if not listed:
        return
    if statements.on_postgresql():
        statements.rows(_MARK_MANY_ON_POSTGRESQL, [listed, now])
    else:
        statements.rows(_MARK_MANY_ON_SQLITE, [orjson.dumps(listed).decode(), statements.moment(now)])


def hold(*, trace_ids: Sequence[int], skips: bool = False) -> list[int]:
    """Lock these traces to the end of the transaction, in one order, as everywhere. Whoever submits holds them too."""
    traces = Trace.objects.filter(pk__in=trace_ids).order_by("pk").select_for_update(no_key=True, skip_locked=skips)
    return list(traces.values_list("pk", flat=True))


def look_at(*, trace_ids: Collection[int], now: dt.datetime) -> int:
    """These traces are looked at anew, settled or not. Says how many that is."""
    if not trace_ids:
        return 0
    rows = Settlement.objects.filter(trace_id__in=list(trace_ids), changed_at__lte=now)
    return rows.update(is_due=True)


def look_again(*, project_id: int, now: dt.datetime) -> int:
    """How often a trace is read was changed: what waits for a person, or for more readings, is looked at anew. Says how
    many traces that is."""
    rows = Settlement.objects.filter(project_id=project_id, state__in=_UNSETTLED, changed_at__lte=now)
    return rows.update(is_due=True)
