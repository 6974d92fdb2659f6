"""The tallies of a project as arrays, grouped by domain, generation, guideline, step kind or pair of raters."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labeling.models import Problem, TraceDraw
from labeling.models.queue import SamplingSource
from labeling.models.trace import StepKind
from labeling.quality.tallies import COUNTERS
from rawsql import integer_columns
from rawsql.integer_columns import IntegerColumn
from stats import rating_patterns
from stats.arrays import Bools, Ints, unique_rows
from stats.first_error_reports import ReportArrays
from stats.rating_patterns import RatingPatterns

# For each counter, the numbers of ratings -1, 0 and +1 of its options.
_COUNTER_PATTERNS = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 2, 0], [0, 1, 1], [0, 0, 2]]
)
RowKeys = tuple[Ints, Sequence[Any]]  # for each row an index into the list of keys


@dataclass(frozen=True)
class TallyArrays:
    """Columns with one row per trace and kind of step.

    The columns domain, step_kind, first_kind and second_kind hold indices into `words`, or -1.
    """

    columns: Mapping[str, Ints]
    words: Mapping[str, Sequence[str]]

    def only(self, traces: Collection[int]) -> "TallyArrays":
        is_chosen = np.isin(self.columns["trace"], np.fromiter(traces, dtype=np.int64))
        return TallyArrays({name: column[is_chosen] for name, column in self.columns.items()}, self.words)

    def steps(self, by: str) -> dict[Any, RatingPatterns]:
        """Return the rating patterns for each key of a dimension."""
        places, keys = _row_keys(self.columns, self.words, by)
        return {keys[place]: self._patterns(rows) for place, rows in _group_rows(places, len(keys))}

    def all_steps(self) -> RatingPatterns:
        return self._patterns(np.arange(len(self.columns["trace"])))

    @cached_property
    def pairs(self) -> "ReadingPairs":
        """The submission pairs, one row per trace."""
        first = np.unique(self.columns["trace"], return_index=True)[1]
        if len(first) == len(self.columns["trace"]):  # usually all steps are of one kind
            return ReadingPairs(self.columns, self.words)
        return ReadingPairs({name: self.columns[name][first] for name in _TRACE_COLUMNS}, self.words)

    @cached_property
    def _problems(self) -> Ints:
        return np.unique(self.columns["problem"], return_inverse=True)[1]

    def _patterns(self, rows: Ints) -> RatingPatterns:
        """Return the patterns of these rows by problem, storing equal problems once."""
        problems = np.unique(self._problems[rows], return_inverse=True)[1]
        summed = [np.bincount(problems, weights=self.columns[name][rows]) for name in COUNTERS]
        kinds, kind = unique_rows(np.stack(summed, axis=1))
        problem, shape = np.nonzero(kinds)
        return RatingPatterns(
            values=rating_patterns.PROJECT_SCALE,
            counts=_COUNTER_PATTERNS[shape],
            units=kinds[problem, shape].astype(np.int64),
            problems=problem.astype(np.int64),
            copies=np.bincount(kind, minlength=len(kinds)),
        )


@dataclass(frozen=True)
class ReadingPairs:
    """The first errors of the two headline submissions of each trace; -1 if there is no second one."""

    columns: Mapping[str, Ints]
    words: Mapping[str, Sequence[str]]

    def __len__(self) -> int:
        return len(self.columns["trace"])

    @property
    def n_steps(self) -> Ints:
        return self.columns["n_steps"]

    @cached_property
    def ends(self) -> Ints:
        return self._both("first_end", "second_end")

    @cached_property
    def is_censored(self) -> Bools:
        return self._both("is_first_censored", "is_second_censored") > 0

    @cached_property
    def raters(self) -> Ints:
        return self._both("first_rater", "second_rater")

    @property
    def is_read_twice(self) -> Bools:
        return np.asarray(self.columns["second_end"] >= 0)

    def by(self, dimension: str) -> dict[Any, Ints]:
        """Return the rows of each key of a dimension."""
        places, keys = _row_keys(self.columns, self.words, dimension)
        return {keys[place]: rows for place, rows in _group_rows(places, len(keys))}

    def at_kind(self, kind: str) -> Ints:
        """Return the traces in which at least one submission has its first error at a step of this kind."""
        place = self.words["first_kind"].index(kind)
        return np.flatnonzero((self.columns["first_kind"] == place) | (self.columns["second_kind"] == place))

    def all_rows(self) -> Ints:
        return np.arange(len(self))

    def reports(self, rows: Ints) -> ReportArrays:
        """Return the first-error reports of some rows."""
        ends = self.ends[rows]
        trace, which = np.nonzero(ends >= 0)
        problems = np.unique(self.columns["problem"][rows], return_inverse=True)[1].astype(np.int64)
        return ReportArrays(
            traces=trace.astype(np.int64),
            raters=self.raters[rows][trace, which],
            ends=ends[trace, which],
            is_censored=self.is_censored[rows][trace, which],
            lengths=self.n_steps[rows],
            problems=problems,
            domains=np.zeros(len(problems), dtype=np.int64),
        )

    def _both(self, first: str, second: str) -> Ints:
        return np.column_stack([self.columns[first], self.columns[second]])


_TRACE_COLUMNS = (
    *("trace", "problem", "domain", "generation", "guideline", "n_steps", "first_kind", "second_kind"),
    *("first_end", "second_end", "is_first_censored", "is_second_censored", "first_rater", "second_rater"),
)


def _row_keys(columns: Mapping[str, Ints], words: Mapping[str, Sequence[str]], by: str) -> RowKeys:
    if by == "pair":
        return _rater_pairs(columns["first_rater"], columns["second_rater"])
    if by in words:
        return columns[by], words[by]
    keys, places = np.unique(columns[by], return_inverse=True)
    return places, keys.tolist()


def _rater_pairs(first: Ints, second: Ints) -> RowKeys:
    """Return the unordered pair of raters of each row, and index -1 for rows with one rater."""
    raters, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    one, other = places.reshape(2, -1)
    keys = np.minimum(one, other) * len(raters) + np.maximum(one, other)
    pairs, index = np.unique(keys, return_inverse=True)
    names = [tuple(raters[list(divmod(pair, len(raters)))].tolist()) for pair in pairs.tolist()]
    return np.where(second < 0, -1, index), names


def _group_rows(places: Ints, n: int) -> list[tuple[int, Ints]]:
    """Return (place, rows) for each place that occurs."""
    order = np.argsort(places, kind="stable")
    ends = np.searchsorted(places[order], np.arange(n + 1))
    return [(place, order[ends[place] : ends[place + 1]]) for place in range(n) if ends[place] < ends[place + 1]]


# Loading


AuditSlice = Callable[[int], Collection[int]]
_audit_slices: list[AuditSlice] = []


def register_audit_slice(slice_of: AuditSlice) -> None:
    """Register a function that returns the audit slice of a project. `prm` calls this in `AppConfig.ready`."""
    if slice_of not in _audit_slices:
        _audit_slices.append(slice_of)


def find_audit_slice(project_id: int) -> list[int] | None:
    """Return the traces of the headline, or None for all traces if no policy has drawn any."""
    if not TraceDraw.objects.filter(project_id=project_id, arm=SamplingSource.POLICY).exists():
        return None
    return sorted(set().union(*(each(project_id) for each in _audit_slices)))


def _step_kind_column(column: str) -> IntegerColumn:
    """Return the index of a step kind, -1 for none. The most frequent kind is tested first."""
    usual = StepKind.values.index(StepKind.REASONING)
    kinds = " ".join(f"WHEN '{kind}' THEN {place}" for place, kind in enumerate(StepKind.values) if place != usual)
    return IntegerColumn(f"CASE {column} WHEN '' THEN -1 WHEN '{StepKind.REASONING}' THEN {usual} {kinds} END")


_COLUMNS = {
    "trace": IntegerColumn("t.trace_id", 8),
    "problem": IntegerColumn("t.problem_id", 8),
    "first_rater": IntegerColumn("t.first_rater_id", 8),
    "second_rater": IntegerColumn("COALESCE(t.second_rater_id, -1)", 8),
    "generation": IntegerColumn("t.generation"),
    # 0 for none, -1 for two different ones.
    "guideline": IntegerColumn("CASE WHEN t.has_two_guidelines THEN -1 ELSE COALESCE(g.version, 0) END"),
    "step_kind": _step_kind_column("t.step_kind"),
    "first_kind": _step_kind_column("t.first_kind"),
    "second_kind": _step_kind_column("t.second_kind"),
    "n_steps": IntegerColumn("t.n_steps"),
    "first_end": IntegerColumn("t.first_end"),
    "second_end": IntegerColumn("COALESCE(t.second_end, -1)"),
    "is_first_censored": IntegerColumn("CASE WHEN t.is_first_censored THEN 1 ELSE 0 END"),
    "is_second_censored": IntegerColumn("CASE WHEN t.is_second_censored THEN 1 ELSE 0 END"),
    **{name: IntegerColumn(f"t.{name}", 2) for name in COUNTERS},
}
_SOURCE = """FROM labeling_agreementtally t LEFT JOIN labeling_guideline g ON g.id = t.guideline_id
WHERE t.project_id = %s AND t.trace_id NOT IN (
  SELECT w.id FROM labeling_trace w WHERE w.project_id = %s AND w.withdrawn_at IS NOT NULL)"""
_KINDS = dict.fromkeys(("step_kind", "first_kind", "second_kind"), StepKind.values)


def load_tally_arrays(*, project_id: int) -> TallyArrays:
    """Load all tallies of a project."""
    blocks = list(integer_columns.read_blocks(_COLUMNS, _SOURCE, [project_id, project_id]))
    # Column by column, freeing the blocks: otherwise all data would be in memory twice.
    columns = {name: np.concatenate([_EMPTY_COLUMN, *(block.pop(name) for block in blocks)]) for name in _COLUMNS}
    problems, domains = _load_domains(project_id)
    names = sorted(set(domains))
    place_of = {name: place for place, name in enumerate(names)}
    places = np.array([place_of[domain] for domain in domains], dtype=np.int32)
    columns["domain"] = places[np.searchsorted(problems, columns["problem"])]
    return TallyArrays(columns, {"domain": names, **_KINDS})


_EMPTY_COLUMN = np.zeros(0, dtype=np.int8)


def _load_domains(project_id: int) -> tuple[Ints, list[str]]:
    """Return the problem ids of a project in order, and the domain of each."""
    rows = Problem.objects.filter(project_id=project_id).order_by("pk").values_list("pk", "domain")
    problems = list(rows.iterator(chunk_size=10_000))
    return np.array([pk for pk, _ in problems], dtype=np.int64), [domain for _, domain in problems]
