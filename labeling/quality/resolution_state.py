"""Marks traces as due for settling, holds them, and reads where they stand. With `settling` and `adjudication` the only
module that changes settlements."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence

import rawsql
from labeling.models import Settlement, Trace
from labeling.models.consensus import SettlementState

_UNSETTLED = (SettlementState.READING, SettlementState.ASKED, SettlementState.CONTESTED)

# A new settlement is due, and nothing has been counted for it yet.
_COLUMNS = """trace_id, project_id, state, reason, n_readings, n_votes, consensus_revision, changed_at, is_due"""
_MARKED = "t.id, t.project_id, 'reading', '', 0, 0, 0, %(now)s::timestamptz, true"

# What a chunk of an import brought, its traces locked as by a submit.
_MARK_BROUGHT_IN = f"""
WITH held AS (
  SELECT id, project_id FROM labeling_trace WHERE id = ANY (%(traces)s::bigint[]) ORDER BY id FOR NO KEY UPDATE)
INSERT INTO labeling_settlement ({_COLUMNS})
SELECT {_MARKED} FROM held t
ON CONFLICT (trace_id) DO UPDATE SET is_due = true"""  # noqa: S608  made of constants

# What came in with fewer ratings than were asked for then, and has enough of them now.
_MARK_ENOUGH = f"""
INSERT INTO labeling_settlement ({_COLUMNS})
SELECT {_MARKED} FROM labeling_trace t
WHERE t.id = ANY (%(traces)s::bigint[]) AND t.kind = 'pregenerated'
  AND NOT EXISTS (SELECT 1 FROM labeling_settlement s WHERE s.trace_id = t.id)
  AND (SELECT COUNT(*) FROM labeling_assignment a JOIN labeling_rater r ON r.id = a.rater_id AND r.kind <> 'machine'
    WHERE a.trace_id = t.id AND a.purpose = 'work' AND a.state = 'submitted' AND NOT a.is_assisted) >= %(overlap)s
ON CONFLICT (trace_id) DO NOTHING"""  # noqa: S608  made of constants


def mark_fully_read_due(*, trace_ids: Iterable[int], overlap: int, now: dt.datetime) -> None:
    """Mark as due those of these traces that came in with as many ratings as the project now asks for. Ratings of a
    file are opinions given; they were too few to be looked at before."""
    rawsql.fetch_rows(_MARK_ENOUGH, {"now": now, "traces": sorted(trace_ids), "overlap": overlap})


def mark_imported_due(*, trace_ids: Iterable[int], now: dt.datetime) -> None:
    """Mark as due what came in with its labels, inside the transaction that brings it."""
    listed = sorted(trace_ids)
    if listed:
        rawsql.fetch_rows(_MARK_BROUGHT_IN, {"traces": listed, "now": now})


def lock_traces(*, trace_ids: Sequence[int], skips: bool = False) -> list[int]:
    """Lock these traces to the end of the transaction, in one order, as everywhere. Whoever submits holds them too."""
    traces = Trace.objects.filter(pk__in=trace_ids).order_by("pk").select_for_update(no_key=True, skip_locked=skips)
    return list(traces.values_list("pk", flat=True))


def mark_due(*, trace_ids: Collection[int], now: dt.datetime) -> int:
    """These traces are looked at anew, settled or not. Says how many that is."""
    if not trace_ids:
        return 0
    rows = Settlement.objects.filter(trace_id__in=list(trace_ids), changed_at__lte=now)
    return rows.update(is_due=True)


def mark_unsettled_due(*, project_id: int, now: dt.datetime) -> int:
    """How often a trace is read was changed: what waits for a person, or for more readings, is looked at anew. Says how
    many traces that is."""
    rows = Settlement.objects.filter(project_id=project_id, state__in=_UNSETTLED, changed_at__lte=now)
    return rows.update(is_due=True)
