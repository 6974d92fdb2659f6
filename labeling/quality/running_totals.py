"""Counts where traces stand and what reports come to. Alone writes settlement days and report counts.

Whoever moves a trace does it inside `counted`: what the trace counted for before is taken away, and what it counts for
then is added, in the same transaction. So nobody who asks what a project came to goes through its traces. The night
counts all of it in one statement, which sees one moment, and adds what is missing: nobody waits for that.
A trace counts from its first look on. What a mistake has brought below zero is told as none until then.
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
    """What is done inside to these traces, which the caller holds, is counted at its end."""
    before = {table.name: table.of_traces(trace_ids) for table in _TABLES}
    yield
    for table in _TABLES:
        table.add(project_id, table.difference(table.of_traces(trace_ids), before[table.name]))


def compute_drift(*, project_id: int) -> TotalsDrift:
    """What counts differ by from the settlements and reports they were counted from, at one moment."""
    return {table.name: table.drift(project_id) for table in _TABLES}


def apply_drift(*, project_id: int, drift: TotalsDrift) -> int:
    """Add what is missing, whatever was counted meanwhile. Says how many counts that is."""
    for table in _TABLES:
        table.add(project_id, drift[table.name])
    return sum(map(len, drift.values()))


def count_by_state(project_id: int) -> dict[str, int]:
    """How many traces are in each state."""
    found = Counter[str]()
    for (state, _day), (traces, _steps) in _load_days(project_id).items():
        found[state] += traces
    return {state: n for state, n in sorted(found.items()) if n > 0}


def count_resolved(project_id: int) -> tuple[int, int]:
    """Traces that the project stands behind, and their steps."""
    standing = [
        counts for (state, _day), counts in _load_days(project_id).items() if state in consensus.RESOLVED_STATES
    ]
    return max(0, sum(traces for traces, _steps in standing)), max(0, sum(steps for _traces, steps in standing))


def count_by_day(project_id: int) -> list[dict[str, Any]]:
    """How many traces came to an end of their readings each day, how many of them contested, and the settled steps."""
    ended, contested, steps = Counter[str](), Counter[str](), Counter[str]()
    for (state, day), (n, n_steps) in _load_days(project_id).items():
        if state in FINISHED_STATES:
            ended[str(day)] += n
            steps[str(day)] += n_steps
            contested[str(day)] += n * (state == SettlementState.CONTESTED)
    return [
        {"day": day, "settled": n, "contested": max(0, contested[day]), "steps": max(0, steps[day])}
        for day, n in sorted(ended.items())
        if n > 0
    ]


def _load_days(project_id: int) -> _Counts:
    """What was counted, by state and day, less what was withdrawn since: that counts nowhere, and may be brought in
    again."""
    table = _SETTLEMENT_DAYS
    return table.difference(table.kept(project_id), table.withdrawn(project_id))


def load_rater_totals(project_id: int) -> Iterator[ReportCount]:
    return ReportCount.objects.filter(project_id=project_id, readings__gt=0).iterator()


class _TotalsTable:
    """A table of counts, and the statement that says what they should be: `{which}` of the traces, or of a project."""

    def __init__(self, *, name: str, of: str, keys: Sequence[str], counts: Sequence[str], expected: str) -> None:
        self.name, self._of, self._expected, self._n_keys = name, of, expected, len(keys)
        self._nothing = (0,) * len(counts)
        named, summed = ", ".join(keys), ", ".join(counts)
        self._kept = f"SELECT {named}, {summed} FROM {name} WHERE project_id = %(project)s"  # noqa: S608  names of our own
        taken = f"SELECT {named}, {', '.join(f'-{each}' for each in counts)} FROM {name} WHERE project_id = %(project)s"  # noqa: S608  names of our own
        sums, differs = (
            ", ".join(f"SUM({each})" for each in counts),
            " OR ".join(f"SUM({each}) <> 0" for each in counts),
        )
        self._drift = (
            f"SELECT {named}, {sums} FROM ({expected} UNION ALL {taken}) together GROUP BY {named} HAVING {differs}"  # noqa: S608  names of our own
        )
        added = ", ".join(f"{each} = {name}.{each} + excluded.{each}" for each in counts)
        self._add = (
            f"INSERT INTO {name} (project_id, {named}, {summed}) VALUES {{rows}}"  # noqa: S608  names of our own
            f" ON CONFLICT (project_id, {named}) DO UPDATE SET {added}"
        )
        self._row = f"({', '.join(['%s'] * (1 + len(keys) + len(counts)))})"

    def of_traces(self, trace_ids: Sequence[int]) -> _Counts:
        which = f"{self._of}.trace_id = ANY (%(traces)s)"
        return self._asked(self._expected, which, {"traces": sorted(set(trace_ids))})

    def kept(self, project_id: int) -> _Counts:
        return self._asked(self._kept, "", {"project": project_id})

    def withdrawn(self, project_id: int) -> _Counts:
        """For a table whose statement knows traces."""
        return self._asked(
            self._expected, "t.project_id = %(project)s AND t.withdrawn_at IS NOT NULL", {"project": project_id}
        )

    def drift(self, project_id: int) -> _Counts:
        return self._asked(self._drift, f"{self._of}.project_id = %(project)s", {"project": project_id})

    def add(self, project_id: int, counts: _Counts) -> None:
        """In one order, as everybody: two who wait for each other would wait for ever."""
        rows = [(project_id, *key, *counts[key]) for key in sorted(counts) if any(counts[key])]
        rawsql.execute_all(rawsql.batch_statements(self._add, self._row, rows))

    def difference(self, now: _Counts, before: _Counts) -> _Counts:
        return {
            key: tuple(
                n - was for n, was in zip(now.get(key, self._nothing), before.get(key, self._nothing), strict=True)
            )
            for key in now.keys() | before.keys()
        }

    def _asked(self, sql: str, which: str, parameters: Mapping[str, Any]) -> _Counts:
        rows = rawsql.fetch_rows(sql.replace("{which}", which), parameters)
        return {row[: self._n_keys]: tuple(map(int, row[self._n_keys :])) for row in rows}


_SETTLEMENT_DAYS = _TotalsTable(
    name="labeling_settlementday",
    of="s",
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
# What one reading alone has settled is left out: held against itself it is always right.
_REPORT_COUNTS = _TotalsTable(
    name="labeling_reportcount",
    of="r",
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
