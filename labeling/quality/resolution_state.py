"""Lock traces, and mark them as due for resolution. `resolve` and `adjudication` do the rest."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence

import rawsql
from labeling.models import Settlement, Trace
from labeling.models.consensus import SettlementState

_UNSETTLED = (SettlementState.READING, SettlementState.ASKED, SettlementState.CONTESTED)

# A new settlement is due and empty.
_COLUMNS = """trace_id, project_id, state, reason, n_readings, n_votes, consensus_revision, changed_at, is_due"""
_VALUES = "t.id, t.project_id, 'reading', '', 0, 0, 0, %(now)s::timestamptz, true"

# Locks the traces in the order that submits use.
_MARK_IMPORTED = f"""
WITH locked AS (
  SELECT id, project_id FROM labeling_trace WHERE id = ANY (%(traces)s::bigint[]) ORDER BY id FOR NO KEY UPDATE)
INSERT INTO labeling_settlement ({_COLUMNS})
SELECT {_VALUES} FROM locked t
ON CONFLICT (trace_id) DO UPDATE SET is_due = true"""  # noqa: S608  made of constants

_MARK_FULLY_LABELED = f"""
INSERT INTO labeling_settlement ({_COLUMNS})
SELECT {_VALUES} FROM labeling_trace t
WHERE t.id = ANY (%(traces)s::bigint[]) AND t.kind = 'pregenerated'
  AND NOT EXISTS (SELECT 1 FROM labeling_settlement s WHERE s.trace_id = t.id)
  AND (SELECT COUNT(*) FROM labeling_assignment a JOIN labeling_rater r ON r.id = a.rater_id AND r.kind <> 'machine'
    WHERE a.trace_id = t.id AND a.purpose = 'work' AND a.state = 'submitted' AND NOT a.is_assisted) >= %(overlap)s
ON CONFLICT (trace_id) DO NOTHING"""  # noqa: S608  made of constants


def lock_traces(*, trace_ids: Sequence[int], skips: bool = False) -> list[int]:
    """Lock these traces until the end of the transaction, in the order that submits use. Return the locked ones."""
    traces = Trace.objects.filter(pk__in=trace_ids).order_by("pk").select_for_update(no_key=True, skip_locked=skips)
    return list(traces.values_list("pk", flat=True))


def mark_due(*, trace_ids: Collection[int], now: dt.datetime) -> int:
    """Mark these traces as due again, settled or not. Return how many were marked."""
    if not trace_ids:
        return 0
    rows = Settlement.objects.filter(trace_id__in=list(trace_ids), changed_at__lte=now)
    return rows.update(is_due=True)


def mark_unsettled_due(*, project_id: int, now: dt.datetime) -> int:
    """Mark all unsettled traces as due after the project's overlap changed. Return how many were marked."""
    rows = Settlement.objects.filter(project_id=project_id, state__in=_UNSETTLED, changed_at__lte=now)
    return rows.update(is_due=True)


def mark_imported_due(*, trace_ids: Iterable[int], now: dt.datetime) -> None:
    """Mark traces that were imported with labels as due, in the transaction of the import."""
    listed = sorted(trace_ids)
    if listed:
        rawsql.fetch_rows(_MARK_IMPORTED, {"traces": listed, "now": now})


def mark_fully_read_due(*, trace_ids: Iterable[int], overlap: int, now: dt.datetime) -> None:
    """Mark imported traces as due that had too few labels before, and have enough for a lower overlap."""
    rawsql.fetch_rows(_MARK_FULLY_LABELED, {"now": now, "traces": sorted(trace_ids), "overlap": overlap})
