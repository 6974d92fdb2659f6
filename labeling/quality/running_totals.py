"""Running totals of trace states and reports, so that statistics need not scan all traces.

The only module that writes settlement days and report counts. Every change of a trace's state runs inside
`track_totals`, which applies the difference in the same transaction. The nightly recount computes all totals in one
statement and adds what differs, without blocking anyone. A trace counts from its first evaluation. Until the next
recount, a negative total caused by an error is reported as zero.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import rawsql
from labeling.models import ReportCount
from labeling.models.consensus import SettlementState
from labeling.quality import consensus

FINISHED_STATES = (SettlementState.SETTLED, SettlementState.CONTESTED, SettlementState.DECIDED)
_Counts = dict[tuple[Any, ...], tuple[int, ...]]
TotalsDrift = dict[str, _Counts]  # by table


@contextmanager
def track_totals(*, project_id: int, trace_ids: Sequence[int]) -> Iterator[None]:
    """Update the totals at the end of the block for changes to these traces, which the caller has locked."""
    before = {table.name: table.count_traces(trace_ids) for table in _TABLES}
    yield
    for table in _TABLES:
        table.add(project_id, table.difference(table.count_traces(trace_ids), before[table.name]))


def compute_drift(*, project_id: int) -> TotalsDrift:
    """Return the differences between the stored totals and a recount, from one snapshot."""
    return {table.name: table.compute_drift(project_id) for table in _TABLES}


def apply_drift(*, project_id: int, drift: TotalsDrift) -> int:
    """Add the differences to the totals, which may have changed meanwhile. Return how many."""
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
    resolved = [
        counts for (state, _day), counts in _load_days(project_id).items() if state in consensus.RESOLVED_STATES
    ]
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
    """Return the counts by state and day, without traces that were withdrawn since."""
    table = _SETTLEMENT_DAYS
    return table.difference(table.load(project_id), table.count_withdrawn(project_id))


def load_rater_totals(project_id: int) -> Iterator[ReportCount]:
    return ReportCount.objects.filter(project_id=project_id, readings__gt=0).iterator()


class _TotalsTable:
    """A table of counts, and the query for their expected values, with `{which}` in place of its condition."""

    def __init__(self, *, name: str, alias: str, keys: Sequence[str], counts: Sequence[str], expected: str) -> None:
        self.name, self._alias, self._expected, self._n_keys = name, alias, expected, len(keys)
        self._zeros = (0,) * len(counts)
        key_list, count_list = ", ".join(keys), ", ".join(counts)
        negated = ", ".join(f"-{count}" for count in counts)
        sums = ", ".join(f"SUM({count})" for count in counts)
        differs = " OR ".join(f"SUM({count}) <> 0" for count in counts)
        added = ", ".join(f"{count} = {name}.{count} + excluded.{count}" for count in counts)
        stored = f"FROM {name} WHERE project_id = %(project)s"
        self._load = f"SELECT {key_list}, {count_list} {stored}"
        self._drift = (
            f"SELECT {key_list}, {sums} FROM ({expected} UNION ALL SELECT {key_list}, {negated} {stored}) difference"  # noqa: S608  our own names
            f" GROUP BY {key_list} HAVING {differs}"
        )
        self._add = (
            f"INSERT INTO {name} (project_id, {key_list}, {count_list}) VALUES {{rows}}"  # noqa: S608  our own names
            f" ON CONFLICT (project_id, {key_list}) DO UPDATE SET {added}"
        )
        self._row = f"({', '.join(['%s'] * (1 + len(keys) + len(counts)))})"

    def count_traces(self, trace_ids: Sequence[int]) -> _Counts:
        which = f"{self._alias}.trace_id = ANY (%(traces)s)"
        return self._fetch(self._expected, which, {"traces": sorted(set(trace_ids))})

    def load(self, project_id: int) -> _Counts:
        return self._fetch(self._load, "", {"project": project_id})

    def count_withdrawn(self, project_id: int) -> _Counts:
        """Count withdrawn traces, if the expected query joins traces."""
        return self._fetch(
            self._expected, "t.project_id = %(project)s AND t.withdrawn_at IS NOT NULL", {"project": project_id}
        )

    def compute_drift(self, project_id: int) -> _Counts:
        return self._fetch(self._drift, f"{self._alias}.project_id = %(project)s", {"project": project_id})

    def add(self, project_id: int, counts: _Counts) -> None:
        # Sorted, so that concurrent transactions lock rows in the same order and cannot deadlock.
        rows = [(project_id, *key, *counts[key]) for key in sorted(counts) if any(counts[key])]
        rawsql.execute_all(rawsql.batch_statements(self._add, self._row, rows))

    def difference(self, now: _Counts, before: _Counts) -> _Counts:
        return {
            key: tuple(n - was for n, was in zip(now.get(key, self._zeros), before.get(key, self._zeros), strict=True))
            for key in now.keys() | before.keys()
        }

    def _fetch(self, sql: str, which: str, parameters: Mapping[str, Any]) -> _Counts:
        rows = rawsql.fetch_rows(sql.replace("{which}", which), parameters)
        return {row[: self._n_keys]: tuple(map(int, row[self._n_keys :])) for row in rows}


_SETTLEMENT_DAYS = _TotalsTable(
    name="labeling_settlementday",
    alias="s",
    keys=("state", "day"),
    counts=("traces", "steps"),
    expected="""
SELECT s.state, (s.changed_at AT TIME ZONE 'UTC')::date AS day, COUNT(*) AS traces,
  COALESCE(SUM(CASE WHEN c.id IS NULL THEN 0 WHEN c.first_error IS NULL THEN t.n_steps ELSE c.first_error + 1 END), 0)
    AS steps
FROM labeling_settlement s
JOIN labeling_trace t ON t.id = s.trace_id
LEFT JOIN labeling_consensus c ON c.trace_id = s.trace_id AND c.revision = s.consensus_revision
  AND s.state IN ('settled', 'decided')
WHERE {which} AND s.reason <> '' GROUP BY 1, 2""",
)
# Consensus of a single vote is left out: compared with itself, a submission is always right.
_REPORT_COUNTS = _TotalsTable(
    name="labeling_reportcount",
    alias="r",
    keys=("rater_id",),
    counts=("readings", "steps", "compared", "same", "missed"),
    expected="""
SELECT r.rater_id, COUNT(*) AS readings,
  SUM(r.n_passed + CASE WHEN r.first_error IS NULL THEN 0 ELSE 1 END) AS steps, COUNT(c.id) AS compared,
  COUNT(CASE WHEN c.id IS NOT NULL
    AND (r.first_error = c.first_error OR (r.first_error IS NULL AND c.first_error IS NULL)) THEN 1 END) AS same,
  COUNT(CASE WHEN c.first_error IS NOT NULL AND (r.first_error IS NULL OR r.first_error > c.first_error) THEN 1 END)
    AS missed
FROM labeling_firsterrorreport r
LEFT JOIN labeling_settlement s ON s.trace_id = r.trace_id AND s.state IN ('settled', 'decided')
LEFT JOIN labeling_consensus c ON c.trace_id = r.trace_id AND c.revision = s.consensus_revision
  AND (c.n_votes > 1 OR c.source <> 'raters') AND NOT r.is_censored
WHERE {which} GROUP BY r.rater_id""",
)
_TABLES = (_SETTLEMENT_DAYS, _REPORT_COUNTS)
