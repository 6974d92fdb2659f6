"""Tallies: how the two headline submissions of each trace compare. The only module that writes tallies.

The headline submissions are the first two that were scheduled before any answer was known: work by members on this
platform, first revision, without scores shown. Other submissions change no tally.

The statement of the submit recounts the whole trace from its ratings. Two submissions have at most some dozens of
ratings; a recount is idempotent, and counts cannot drift as increments do. The caller locks the trace, so the later of
two simultaneous submits sees both.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.db import transaction

import rawsql
from labeling.models import AgreementTally
from labeling.quality import resolution_state

_COLUMNS = (
    *("trace_id", "step_kind", "project_id", "problem_id", "generation", "first_id", "second_id", "first_rater_id"),
    *("second_rater_id", "guideline_id", "has_two_guidelines", "n_steps", "first_end", "second_end"),
    *("is_first_censored", "is_second_censored", "first_kind", "second_kind"),
    *("negative", "neutral", "positive", "negative_negative"),
    *("negative_neutral", "negative_positive", "neutral_neutral", "neutral_positive", "positive_positive"),
)
COUNTERS = _COLUMNS[18:]


def tally_trace(*, trace_id: int, now: dt.datetime) -> None:
    """Recount a trace and mark it as due, in the transaction of the submit, with the trace locked."""
    rawsql.fetch_rows(_COUNT, {"trace": trace_id, "now": now})


def recount_tallies(*, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Correct the tallies of these traces. Return how many traces differed.

    Locks the traces as submits do, so that none is between its rating and its count.
    """
    with transaction.atomic():
        resolution_state.lock_traces(trace_ids=trace_ids)
        expected = _compute_tallies(trace_ids)
        stored = _load_tallies(trace_ids)
        differing = sorted({key[0] for key in expected.keys() | stored.keys() if expected.get(key) != stored.get(key)})
        if differing:
            AgreementTally.objects.filter(trace_id__in=differing).delete()
            _insert(differing)
    return len(differing)


def _compute_tallies(trace_ids: Sequence[int]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return _by_key(rawsql.fetch_rows(_EXPECTED, {"traces": sorted(trace_ids)}))


def _load_tallies(trace_ids: Sequence[int]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return _by_key(AgreementTally.objects.filter(trace_id__in=trace_ids).values_list(*_COLUMNS))


def _by_key(rows: Any) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {tuple(row[:2]): tuple(row[2:]) for row in rows}


def _insert(trace_ids: Sequence[int]) -> None:
    rawsql.fetch_rows(_RECOUNT, {"traces": sorted(trace_ids)})


_COUNT = rawsql.load_sql(__file__, "count.sql")
_PART = rawsql.sections(_COUNT)
_SEVERAL = """
WITH asked AS (
  SELECT id AS trace_id, project_id, problem_id FROM labeling_trace WHERE id = ANY (%(traces)s::bigint[])),
"""
_EXPECTED = _SEVERAL + _PART["count"] + _PART["rows"]
_RECOUNT = _SEVERAL + _PART["count"] + _PART["insert"] + _PART["rows"] + _PART["conflict"]
