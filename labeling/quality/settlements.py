"""Marks traces as due for settling, holds them, and reads where they stand. With `settling` and `adjudication` the only
module that changes settlements."""

import datetime as dt
from collections.abc import Sequence

from labeling.models import Settlement, Trace
from labeling.models.consensus import SettlementState

_UNSETTLED = (SettlementState.READING, SettlementState.CONTESTED)

# The marks of a submit: its trace is looked at by the next settling.
MARK = """
INSERT INTO labeling_settlement (trace_id, project_id, state, reason, n_readings, n_votes, consensus_revision,
  changed_at, is_due)
SELECT t.id, t.project_id, 'reading', '', 0, 0, 0, %s, true FROM labeling_trace t WHERE t.id = %s
ON CONFLICT (trace_id) DO UPDATE SET is_due = true"""
MARK_ON_POSTGRESQL = MARK.replace("%s, true", "%s::timestamptz, true")


def hold(*, trace_ids: Sequence[int], skips: bool = False) -> list[int]:
    """Lock these traces to the end of the transaction, in one order, as everywhere. Whoever submits holds them too."""
    traces = Trace.objects.filter(pk__in=trace_ids).order_by("pk").select_for_update(no_key=True, skip_locked=skips)
    return list(traces.values_list("pk", flat=True))


def look_again(*, project_id: int, now: dt.datetime) -> int:
    """How often a trace is read was changed: what waits for a person, or for more readings, is looked at anew. Says how
    many traces that is."""
    rows = Settlement.objects.filter(project_id=project_id, state__in=_UNSETTLED, changed_at__lte=now)
    return rows.update(is_due=True)
