"""Settlements, the states of traces: locks, marks for due traces, reasons as text, and running totals.

`resolve` and `adjudication` change states. Every such change runs inside `track_totals`, which applies the difference
to the totals in the same transaction, so that statistics need not scan all traces. The nightly recount computes all
totals in one statement and adds what differs, without blocking anyone. A trace counts from its first evaluation. Until
the next recount, a negative total caused by an error is reported as zero. Only this module writes settlement days and
report counts.
"""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext_lazy as _

import rawsql
from jobs import wakeups
from labeling.models import ReportCount, Settlement, SettlementDay
from labeling.models.consensus import SettlementState

RESOLVED_STATES = (SettlementState.SETTLED, SettlementState.DECIDED)
FINISHED_STATES = (*RESOLVED_STATES, SettlementState.CONTESTED)
_UNSETTLED = (SettlementState.READING, SettlementState.ASKED, SettlementState.CONTESTED)

RESOLUTION_REASONS = {
    "": _("Not evaluated yet."),
    "first_readings": _("Waiting for the initial labels."),
    "differ": _("Annotators disagree on the first error. One more label was requested."),
    "cut_off": _("Some annotators gave up or reported the problem. One more label was requested."),
    "all_agree": _("All annotators agree on the first error or agree that there is none."),
    "most_agree": _("Most annotators agree on the first error or agree that there is none."),
    "most_likely": _(
        "Annotators disagree. The rater model, calibrated on hidden gold, finds this first error the most likely."
    ),
    "accepted": _("The probability of this first error reached the acceptance threshold."),
    "doubtful": _("Annotators agree, but the rater model is not sure enough. One more label was requested."),
    "doubtful_at_limit": _(
        "Most annotators agree, but the rater model is not sure enough, and no additional label can be requested."
    ),
    "differ_at_limit": _("Annotators disagree, and the maximum number of labels per trace has been reached."),
    "cut_off_at_limit": _("Too many annotators gave up, and the maximum number of labels per trace has been reached."),
    "bad_problem": _("Two annotators reported that the problem itself is bad."),
    "decided": _("Decided by an adjudicator."),
    "sent_back": _("An adjudicator requested one more label."),
    "reopened": _("The trace was reopened and is waiting for a decision."),
    "set_aside": _("Labels were set aside. The trace is waiting for new ones."),
    "set_aside_at_limit": _("Labels were set aside, and no more labels can be requested."),
    "licensed": _("A licensed machine labeled this trace alone. No person has labeled it."),
    "licensed_vote": _("People and a licensed machine agree on the first error or agree that there is none."),
    "live": _("The steps were generated during labeling, so no two annotators labeled the same ones."),
}


_LOCK = "SELECT id FROM labeling_trace WHERE id = ANY (%(traces)s::bigint[]) ORDER BY id FOR NO KEY UPDATE"


def lock_traces(*, trace_ids: Sequence[int], skips: bool = False) -> list[int]:
    """Lock these traces until the end of the transaction, in the order that submits use. Return the locked ones.
    `skips` leaves out those that are locked by others."""
    sql = f"{_LOCK} SKIP LOCKED" if skips else _LOCK
    return [pk for (pk,) in rawsql.fetch_rows(sql, {"traces": list(trace_ids)})]


_FIELDS = [field.attname for field in Settlement._meta.concrete_fields]
_CHANGING = [name for name in _FIELDS if name not in ("trace_id", "project_id")]
_LOAD_DUE = f"""
SELECT {", ".join(_FIELDS)} FROM labeling_settlement
WHERE trace_id = ANY (%(traces)s::bigint[]) AND is_due ORDER BY trace_id"""  # noqa: S608  names of columns
_SAVE = f"""
UPDATE labeling_settlement s SET {", ".join(f"{name} = r.{name}" for name in _CHANGING)}
FROM json_populate_recordset(NULL::labeling_settlement, %(rows)s::json) r WHERE s.trace_id = r.trace_id"""  # noqa: S608  names of columns


def load_due_settlements(*, trace_ids: Sequence[int]) -> list[Settlement]:
    """Return the settlements that are due among those of these traces, which the caller has locked."""
    rows = rawsql.fetch_rows(_LOAD_DUE, {"traces": list(trace_ids)})
    return [Settlement.from_db(DEFAULT_DB_ALIAS, _FIELDS, row) for row in rows]


def save_resolved(rows: Sequence[Settlement]) -> None:
    """Save settlements whose traces the caller has locked, all in one statement."""
    values = [{name: getattr(row, name) for name in _FIELDS} for row in rows]
    rawsql.fetch_rows(_SAVE, {"rows": orjson.dumps(values).decode()})


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
    WHERE a.trace_id = t.id AND a.purpose = 'work' AND a.state = 'submitted' AND NOT a.is_assisted
      AND a.set_aside_id IS NULL) >= %(overlap)s
ON CONFLICT (trace_id) DO NOTHING"""  # noqa: S608  made of constants


REFRESH_TASK = "labeling.refresh"  # resolves due traces and computes stale statistics


def mark_due(*, trace_ids: Collection[int], now: dt.datetime) -> int:
    """Mark these traces as due again, settled or not. Return how many were marked."""
    wakeups.request_task(REFRESH_TASK)
    return Settlement.objects.filter(trace_id__in=list(trace_ids), changed_at__lte=now).update(is_due=True)


def mark_unsettled_due(*, project_id: int, now: dt.datetime) -> int:
    """Mark all unsettled traces as due after the project's overlap changed. Return how many were marked."""
    wakeups.request_task(REFRESH_TASK)
    rows = Settlement.objects.filter(project_id=project_id, state__in=_UNSETTLED, changed_at__lte=now)
    return rows.update(is_due=True)


def mark_imported_due(*, trace_ids: Iterable[int], now: dt.datetime) -> None:
    """Mark traces that were imported with labels as due, in the transaction of the import."""
    listed = sorted(trace_ids)
    if listed:
        rawsql.fetch_rows(_MARK_IMPORTED, {"traces": listed, "now": now})
        wakeups.request_task(REFRESH_TASK)


def mark_fully_labeled_due(*, trace_ids: Iterable[int], overlap: int, now: dt.datetime) -> None:
    """Mark imported traces as due that had too few labels before, and have enough for a lower overlap."""
    rawsql.fetch_rows(_MARK_FULLY_LABELED, {"now": now, "traces": sorted(trace_ids), "overlap": overlap})


# Totals of states and reports


_Counts = dict[tuple[Any, ...], tuple[int, ...]]
TotalsDrift = dict[str, _Counts]  # by table


@contextmanager
def track_totals(*, project_id: int, trace_ids: Sequence[int]) -> Iterator[None]:
    """Update the totals at the end of the block for changes to these traces, which the caller has locked."""
    traces = sorted(set(trace_ids))
    before = {table.name: table.count("base.trace_id = ANY (%(traces)s)", traces=traces) for table in _TABLES}
    yield
    for table in _TABLES:
        after = table.count("base.trace_id = ANY (%(traces)s)", traces=traces)
        table.add(project_id, table.subtract(after, before[table.name]))


def compute_drift(*, project_id: int) -> TotalsDrift:
    """Return the differences between the stored totals and a recount, from one snapshot."""
    return {table.name: table.compute_drift(project_id) for table in _TABLES}


def apply_drift(*, project_id: int, drift: TotalsDrift) -> int:
    """Add the differences to the totals, which may have changed in the meantime. Return how many there were."""
    for table in _TABLES:
        table.add(project_id, drift[table.name])
    return sum(map(len, drift.values()))


def count_by_state(project_id: int) -> dict[str, int]:
    """Return the number of traces in each state."""
    by_state = Counter[str]()
    for (state, _day), (traces, _steps) in _load_days(project_id).items():
        by_state[state] += traces
    return {state: n for state, n in sorted(by_state.items()) if n > 0}


def count_resolved(project_id: int) -> tuple[int, int]:
    """Return the numbers of resolved traces and of their steps."""
    resolved = [counts for (state, _day), counts in _load_days(project_id).items() if state in RESOLVED_STATES]
    return max(0, sum(traces for traces, _steps in resolved)), max(0, sum(steps for _traces, steps in resolved))


def count_by_day(project_id: int) -> list[dict[str, Any]]:
    """Return for each day the numbers of finished traces, of contested ones among them, and of settled steps."""
    finished, contested, steps = Counter[str](), Counter[str](), Counter[str]()
    for (state, day), (n, n_steps) in _load_days(project_id).items():
        if state in FINISHED_STATES:
            finished[str(day)] += n
            steps[str(day)] += n_steps
            contested[str(day)] += n * (state == SettlementState.CONTESTED)
    return [
        {"day": day, "settled": n, "contested": max(0, contested[day]), "steps": max(0, steps[day])}
        for day, n in sorted(finished.items())
        if n > 0
    ]


def _load_days(project_id: int) -> _Counts:
    """Return the numbers of traces and steps by state and day, without traces that were withdrawn since."""
    rows = SettlementDay.objects.filter(project_id=project_id).values_list("state", "day", "traces", "steps")
    withdrawn = _SETTLEMENT_DAYS.count("t.project_id = %(project)s AND t.withdrawn_at IS NOT NULL", project=project_id)
    return _SETTLEMENT_DAYS.subtract({(state, day): tuple(counts) for state, day, *counts in rows}, withdrawn)


def load_rater_totals(project_id: int) -> Iterator[ReportCount]:
    return ReportCount.objects.filter(project_id=project_id, readings__gt=0).iterator()


@dataclass(frozen=True)
class _TotalsTable:
    """A table of counts, and the query for their expected values, with `{which}` in place of its condition."""

    name: str
    keys: tuple[str, ...]
    counts: tuple[str, ...]
    expected: str

    def count(self, which: str, **parameters: Any) -> _Counts:
        return self._fetch(self.expected.format(which=which), parameters)

    def compute_drift(self, project_id: int) -> _Counts:
        keys = ", ".join(self.keys)
        sums = ", ".join(f"SUM({count})" for count in self.counts)
        negated = ", ".join(f"-{count}" for count in self.counts)
        differs = " OR ".join(f"SUM({count}) <> 0" for count in self.counts)
        sql = (
            f"SELECT {keys}, {sums} FROM ({self.expected.format(which='base.project_id = %(project)s')}"  # noqa: S608  our own names
            f" UNION ALL SELECT {keys}, {negated} FROM {self.name} WHERE project_id = %(project)s) difference"
            f" GROUP BY {keys} HAVING {differs}"
        )
        return self._fetch(sql, {"project": project_id})

    def add(self, project_id: int, counts: _Counts) -> None:
        keys, columns = ("project_id", *self.keys), ("project_id", *self.keys, *self.counts)
        added = ", ".join(f"{count} = {self.name}.{count} + excluded.{count}" for count in self.counts)
        sql = (
            f"INSERT INTO {self.name} ({', '.join(columns)}) VALUES {{rows}}"  # noqa: S608  our own names
            f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {added}"
        )
        # Sorted, so that concurrent transactions lock rows in the same order and cannot deadlock.
        rows = [(project_id, *key, *counts[key]) for key in sorted(counts) if any(counts[key])]
        rawsql.write_rows(sql, f"({', '.join(['%s'] * len(columns))})", rows)

    def subtract(self, now: _Counts, before: _Counts) -> _Counts:
        zeros = (0,) * len(self.counts)
        return {
            key: tuple(n - was for n, was in zip(now.get(key, zeros), before.get(key, zeros), strict=True))
            for key in now.keys() | before.keys()
        }

    def _fetch(self, sql: str, parameters: dict[str, Any]) -> _Counts:
        n_keys = len(self.keys)
        return {row[:n_keys]: tuple(map(int, row[n_keys:])) for row in rawsql.fetch_rows(sql, parameters)}


_SETTLEMENT_DAYS = _TotalsTable(
    name="labeling_settlementday",
    keys=("state", "day"),
    counts=("traces", "steps"),
    expected="""
SELECT base.state, (base.changed_at AT TIME ZONE 'UTC')::date AS day, COUNT(*) AS traces,
  COALESCE(SUM(CASE WHEN c.id IS NULL THEN 0 WHEN c.first_error IS NULL THEN t.n_steps ELSE c.first_error + 1 END), 0)
    AS steps
FROM labeling_settlement base
JOIN labeling_trace t ON t.id = base.trace_id
LEFT JOIN labeling_consensus c ON c.trace_id = base.trace_id AND c.revision = base.consensus_revision
  AND base.state IN ('settled', 'decided')
WHERE {which} AND base.reason <> '' GROUP BY 1, 2""",
)
# A report is compared with a person's decision, or with the votes of the other raters: its own vote would make it look
# better, and reports that are set aside count nowhere. If the others are tied, the report is not compared.
_REPORT_COUNTS = _TotalsTable(
    name="labeling_reportcount",
    keys=("rater_id",),
    counts=("readings", "steps", "compared", "same", "missed"),
    expected="""
SELECT base.rater_id, COUNT(*) AS readings,
  SUM(base.n_passed + CASE WHEN base.first_error IS NULL THEN 0 ELSE 1 END) AS steps, COUNT(o.n) AS compared,
  COUNT(CASE WHEN o.n IS NOT NULL AND base.first_error IS NOT DISTINCT FROM o.first_error THEN 1 END) AS same,
  COUNT(CASE WHEN o.first_error IS NOT NULL AND (base.first_error IS NULL OR base.first_error > o.first_error)
    THEN 1 END) AS missed
FROM labeling_firsterrorreport base
JOIN labeling_assignment own ON own.id = base.assignment_id AND own.set_aside_id IS NULL
LEFT JOIN labeling_settlement s ON s.trace_id = base.trace_id AND s.state IN ('settled', 'decided')
LEFT JOIN labeling_consensus c ON c.trace_id = base.trace_id AND c.revision = s.consensus_revision
LEFT JOIN LATERAL (
  SELECT c.first_error, 1 AS n WHERE c.source <> 'raters'
  UNION ALL
  SELECT x.first_error, x.n FROM (
    SELECT v.first_error, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place,
      COUNT(*) OVER (PARTITION BY COUNT(*)) AS n_tied
    FROM labeling_firsterrorreport v
    JOIN labeling_assignment a ON a.id = v.assignment_id AND a.set_aside_id IS NULL
    WHERE c.source = 'raters' AND v.trace_id = base.trace_id AND v.rater_id <> base.rater_id AND NOT v.is_censored
    GROUP BY v.first_error) AS x
  WHERE x.place = 1 AND x.n_tied = 1) AS o ON NOT base.is_censored
WHERE {which} GROUP BY base.rater_id""",
)
_TABLES = (_SETTLEMENT_DAYS, _REPORT_COUNTS)
