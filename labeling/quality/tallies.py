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
    """Count a trace anew and mark it as due for settling. Inside the transaction that submits, with the trace held."""
    rawsql.fetch_rows(_COUNT, {"trace": trace_id, "now": now})


def recount_tallies(*, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Hold the tallies of these traces against their ratings and put right what differs. Says of how many that was so.

    Held like in a submit, so that none of them is between its rating and its count."""
    with transaction.atomic():
        resolution_state.lock_traces(trace_ids=trace_ids)
        wanted = _compute_tallies(trace_ids)
        stored = _load_tallies(trace_ids)
        differing = sorted({key[0] for key in wanted.keys() | stored.keys() if wanted.get(key) != stored.get(key)})
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
