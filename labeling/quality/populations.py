"""Reads the headline of a project from its tallies, in the shapes that statistics are computed from. Reads only.

Withdrawn traces count nowhere. Where a policy has chosen traces, only those of the audit slice count: a simple random
sample of the pool, whoever drew them. Which they are is told by the room that draws; it registers itself here.

Everything is grouped by problem in the database: a million ratings come as a few
thousand rows.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

import statements
from labeling.agreement import patterns
from labeling.agreement.arrays import Bools, Ints
from labeling.agreement.patterns import Patterns
from labeling.agreement.reports import Reports
from labeling.models import Draw
from labeling.models.queue import Arm
from labeling.quality.tallies import COUNTERS

# By what the headline is told apart: the columns that name a row.
_GUIDELINE = "CASE WHEN t.has_two_guidelines THEN -1 ELSE COALESCE(g.version, 0) END"
_KEYS = {
    "all": "0",
    "domain": "p.domain",
    "generation": "t.generation",
    "guideline": _GUIDELINE,  # 0 for none, -1 where the two had different ones
    "step_kind": "t.step_kind",
    "pair": "CASE WHEN t.first_rater_id < t.second_rater_id THEN t.first_rater_id ELSE t.second_rater_id END,"
    " CASE WHEN t.first_rater_id < t.second_rater_id THEN t.second_rater_id ELSE t.first_rater_id END",
}
_JOINS = {
    "domain": "JOIN labeling_problem p ON p.id = t.problem_id",
    "guideline": "LEFT JOIN labeling_guideline g ON g.id = t.guideline_id",
}
_POPULATION = """t.project_id = %s AND t.trace_id NOT IN (
  SELECT w.id FROM labeling_trace w WHERE w.project_id = %s AND w.withdrawn_at IS NOT NULL)"""
_AT_ONCE = 50_000  # traces
Slice = Callable[[int], Collection[int]]
_slices: list[Slice] = []


def register(slice_of: Slice) -> None:
    """For `AppConfig.ready` of the room that draws: gives the audit slice of a project, by its traces."""
    if slice_of not in _slices:
        _slices.append(slice_of)


def slice_of(project_id: int) -> list[int] | None:
    """The traces that the headline rests on; None for all that were read, where no policy has chosen any."""
    if not Draw.objects.filter(project_id=project_id, arm=Arm.POLICY).exists():
        return None
    return sorted(set().union(*(each(project_id) for each in _slices)))


_SUMS = ", ".join(f"SUM(t.{name})" for name in COUNTERS)
# What an option shows that counts in each of the counters: ratings of -1, 0 and +1.
_SHAPES = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 2, 0], [0, 1, 1], [0, 0, 2]])


def of_steps(
    *, project_id: int, by: str = "all", within: Sequence[int] | None = None
) -> dict[tuple[Any, ...], Patterns]:
    """Patterns of step ratings, by the key of each row of a dimension; `within` these traces alone, where told."""
    among, traces = _among(within)
    pairs_only = " AND t.second_rater_id IS NOT NULL" if by == "pair" else ""
    keys = _KEYS[by]
    n_keys = 2 if by == "pair" else 1
    places = ", ".join(str(n + 1) for n in range(n_keys + 1))
    found = statements.rows(
        f"SELECT {keys}, t.problem_id, {_SUMS} FROM labeling_tally t {_JOINS.get(by, '')}"  # noqa: S608  made of constants
        f" WHERE {_POPULATION}{among}{pairs_only} GROUP BY {places}",
        [project_id, project_id, *traces],
    )
    by_key: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in found:
        by_key.setdefault(tuple(row[:n_keys]), []).append(row[n_keys:])
    return {key: _patterns(rows) for key, rows in by_key.items()}


def _among(traces: Sequence[int] | None) -> tuple[str, list[Any]]:
    """A condition and its parameter, both empty where every trace counts."""
    if traces is None:
        return "", []
    if statements.on_postgresql():
        return " AND t.trace_id = ANY (%s::bigint[])", [list(traces)]
    return " AND t.trace_id IN (SELECT value FROM json_each(%s))", [orjson.dumps(list(traces)).decode()]


def _patterns(rows: Sequence[tuple[Any, ...]]) -> Patterns:
    """From a row a problem: its number, then the counters."""
    units = np.array([row[1:] for row in rows], dtype=np.int64)
    problem, shape = np.nonzero(units)
    return Patterns(
        values=patterns.SCALE,
        counts=_SHAPES[shape],
        units=units[problem, shape],
        problems=problem.astype(np.int64),
        copies=np.ones(len(rows), dtype=np.int64),
    )


@dataclass(frozen=True)
class Meetings:
    """Where both readings of each trace saw the first error; one row a trace, keys by dimension beside it."""

    n_steps: Ints
    ends: Ints  # (traces, 2); -1 where nobody has read it a second time
    is_censored: Bools  # (traces, 2)
    raters: Ints  # (traces, 2); -1 for nobody
    problems: Ints
    kinds: npt.NDArray[Any]  # (traces, 2): of the step at which each saw it; blank for none
    keys: dict[str, npt.NDArray[Any]]

    def at_kind(self, kind: str) -> Bools:
        """Traces in which at least one of the two saw the first error at a step of this kind."""
        return np.asarray((self.kinds == kind).any(axis=1))

    def reports(self, chosen: Bools) -> Reports:
        """Those of the chosen traces, by which agreement on the first error is computed."""
        ends, censored, raters = self.ends[chosen], self.is_censored[chosen], self.raters[chosen]
        trace, turn = np.nonzero(ends >= 0)
        problems = np.unique(self.problems[chosen], return_inverse=True)[1].astype(np.int64)
        return Reports(
            traces=trace.astype(np.int64),
            raters=raters[trace, turn],
            ends=ends[trace, turn],
            is_censored=censored[trace, turn],
            lengths=self.n_steps[chosen],
            problems=problems,
            domains=np.zeros(len(problems), dtype=np.int64),
        )


def of_first_errors(*, project_id: int, within: Sequence[int] | None = None) -> Meetings:
    """Read some traces at a time: as tuples a million of them take a gigabyte, as arrays a tenth of that."""
    among, traces = _among(within)
    sql = (
        f"SELECT DISTINCT t.trace_id, t.n_steps, t.first_end, COALESCE(t.second_end, -1), t.is_first_censored,"  # noqa: S608  made of constants
        f" COALESCE(t.is_second_censored, false), t.first_rater_id, COALESCE(t.second_rater_id, -1), t.problem_id,"
        f" t.generation, {_GUIDELINE}, p.domain, t.first_kind, t.second_kind"
        f" FROM labeling_tally t {_JOINS['domain']} {_JOINS['guideline']}"
        f" WHERE t.trace_id BETWEEN %s AND %s AND {_POPULATION}{among}"
    )
    given = [project_id, project_id, *traces]
    return _joined([_meetings(statements.rows(sql, [*span, *given])) for span in _spans(project_id)])


def _spans(project_id: int) -> list[tuple[int, int]]:
    """Stretches of trace numbers, each read by one statement; one that is empty where nothing is counted."""
    ((low, high),) = statements.rows(
        "SELECT COALESCE(MIN(trace_id), 1), COALESCE(MAX(trace_id), 0) FROM labeling_tally WHERE project_id = %s",
        [project_id],
    )
    return [(at, min(at + _AT_ONCE - 1, high)) for at in range(low, max(high, low) + 1, _AT_ONCE)]


def _meetings(found: Sequence[tuple[Any, ...]]) -> Meetings:
    columns = list(zip(*found, strict=True)) if found else [()] * 14
    whole = [np.array(column, dtype=np.int64) for column in columns[:11]]
    domains, *kinds = (_words(column) for column in columns[11:])
    return Meetings(
        n_steps=whole[1],
        ends=np.column_stack(whole[2:4]),
        is_censored=np.column_stack(whole[4:6]).astype(np.bool_),
        raters=np.column_stack(whole[6:8]),
        problems=whole[8],
        kinds=np.column_stack(kinds),
        keys={"domain": domains, "generation": whole[9], "guideline": whole[10]},
    )


def _words(column: Sequence[str]) -> npt.NDArray[Any]:
    """Each word kept once, however many traces have it."""
    return np.array([sys.intern(word) for word in column], dtype=object)


def _joined(parts: Sequence[Meetings]) -> Meetings:
    whole = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Meetings)
        if field.name != "keys"
    }
    keys = {by: np.concatenate([part.keys[by] for part in parts]) for by in parts[0].keys}
    return Meetings(**whole, keys=keys)


NOTHING = patterns.of_rows([])
