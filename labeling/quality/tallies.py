"""Tallies: how the two headline submissions of each trace compare. The only module that writes tallies.

The headline submissions are the first two that were scheduled before any answer was known: work by members on this
platform, first revision, without scores shown. Other submissions change no tally.

One statement recounts the whole trace from its ratings, a few seconds after each submit. Two submissions have at most
some dozens of ratings; a recount is idempotent, and counts cannot drift as increments do. The caller locks the trace.

Statistics read all tallies of a project as arrays, and group them by domain, generation, guideline, step kind or pair
of raters.
"""

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from django.db import transaction

import rawsql
from jobs import wakeups
from labeling.models import AgreementTally, Problem, TraceDraw
from labeling.models.queue import SamplingSource
from labeling.models.trace import StepKind
from labeling.quality import settlements
from rawsql import integer_columns
from rawsql.integer_columns import IntegerColumn
from stats import agreement, rating_patterns
from stats.arrays import Bools, Ints, unique_rows
from stats.estimates import Estimate
from stats.first_error_reports import ReportArrays
from stats.rating_patterns import RatingPatterns

_FIELDS = [field.attname for field in AgreementTally._meta.concrete_fields if not field.primary_key]  # as in count.sql
_TALLY = rawsql.BulkTable(AgreementTally, "id", *_FIELDS)
COUNTERS = tuple(_FIELDS[_FIELDS.index("negative") :])


def tally_trace(*, trace_id: int, now: dt.datetime) -> None:
    """Recount a trace and mark it as due for settling. The caller has locked it."""
    rawsql.fetch_rows(_COUNT, {"trace": trace_id, "now": now})
    wakeups.request_task(settlements.REFRESH_TASK)


def recount_tallies(*, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Correct the tallies of these traces. Return how many traces differed.

    Locks the traces as submits do, so that no submit changes a trace during its recount.
    """
    with transaction.atomic():
        settlements.lock_traces(trace_ids=trace_ids)
        expected = set(rawsql.fetch_rows(_EXPECTED, {"traces": sorted(trace_ids)}))
        stored = set(AgreementTally.objects.filter(trace_id__in=trace_ids).values_list(*_FIELDS))
        differing = {trace_id for trace_id, *_ in expected ^ stored}
        if differing:
            AgreementTally.objects.filter(trace_id__in=differing).delete()
            rows = sorted((row for row in expected if row[0] in differing), key=itemgetter(0, 1, 2))
            _TALLY.insert([(pk, *row) for pk, row in zip(rawsql.new_ids(_TALLY.name), rows)])  # noqa: B905  ids never end
    return len(differing)


_COUNT = rawsql.load_sql(__file__, "count.sql")
_PART = rawsql.sections(_COUNT)
_SEVERAL = """
WITH asked AS (
  SELECT id AS trace_id, project_id, problem_id FROM labeling_trace WHERE id = ANY (%(traces)s::bigint[])),
"""
_EXPECTED = _SEVERAL + _PART["count"] + _PART["rows"]


# Arrays


# For each counter, the numbers of ratings -1, 0 and +1 of its options.
_COUNTER_PATTERNS = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 2, 0], [0, 1, 1], [0, 0, 2]]
)


@dataclass(frozen=True)
class _GroupedColumns:
    """Columns of equal length. Domain, step_kind, first_kind and second_kind hold indices into `words`, or -1."""

    columns: Mapping[str, Ints]
    words: Mapping[str, Sequence[str]]

    def by(self, dimension: str) -> dict[Any, Ints]:
        """Return the rows of each key of a dimension."""
        if dimension == "pair":
            places, keys = _rater_pairs(self.columns["first_rater"], self.columns["second_rater"])
        elif dimension in self.words:
            places, keys = self.columns[dimension], self.words[dimension]
        else:
            unique, places = np.unique(self.columns[dimension], return_inverse=True)
            keys = unique.tolist()
        order = np.argsort(places, kind="stable")
        ends = np.searchsorted(places[order], np.arange(len(keys) + 1)).tolist()
        return {key: order[start:end] for key, (start, end) in zip(keys, pairwise(ends), strict=True) if start < end}


def _rater_pairs(first: Ints, second: Ints) -> tuple[Ints, Sequence[Any]]:
    """Return for each row the index of its unordered pair of raters, -1 for rows with one rater; and the pairs."""
    raters, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    one, other = places.reshape(2, -1)
    keys = np.minimum(one, other) * len(raters) + np.maximum(one, other)
    pairs, index = np.unique(keys, return_inverse=True)
    names = [tuple(raters[list(divmod(pair, len(raters)))].tolist()) for pair in pairs.tolist()]
    return np.where(second < 0, -1, index), names


class TallyArrays(_GroupedColumns):
    """Columns with one row per trace and kind of step, and one more for the alternatives to steps of that kind.

    Raters rate alternatives only where they found the error, so the statistics of steps leave them out.
    """

    def only(self, traces: Collection[int]) -> "TallyArrays":
        is_chosen = np.isin(self.columns["trace"], np.fromiter(traces, dtype=np.int64))
        return TallyArrays({name: column[is_chosen] for name, column in self.columns.items()}, self.words)

    def by_raters(self, *, only: Collection[int] = (), without: Collection[int] = ()) -> "TallyArrays":
        """Return the traces whose compared submissions are all by the raters in `only`, if any, none by `without`."""
        raters = np.stack([self.columns["first_rater"], self.columns["second_rater"]])
        is_chosen = ~np.isin(raters, list(without)).any(axis=0)
        if only:
            is_chosen &= np.isin(raters, [*only, -1]).all(axis=0)  # -1: there is no second one
        return TallyArrays({name: column[is_chosen] for name, column in self.columns.items()}, self.words)

    def steps(self, by: str) -> dict[Any, RatingPatterns]:
        """Return the rating patterns for each key of a dimension."""
        return {key: self._patterns(rows[self._is_step[rows]]) for key, rows in self.by(by).items()}

    def all_steps(self) -> RatingPatterns:
        return self._patterns(np.flatnonzero(self._is_step))

    def all_alternatives(self) -> RatingPatterns:
        return self._patterns(np.flatnonzero(~self._is_step))

    def count_ratings(self) -> dict[str, int]:
        """Return the number of ratings by value, of steps and of alternatives."""
        options = np.array([self.columns[name].sum() for name in COUNTERS])
        return dict(zip(("-1", "0", "1"), (options @ _COUNTER_PATTERNS).tolist(), strict=True))

    @property
    def _is_step(self) -> Bools:
        return np.asarray(self.columns["is_alternative"] == 0)

    @cached_property
    def pairs(self) -> "SubmissionPairs":
        """The submission pairs, one row per trace."""
        first = np.unique(self.columns["trace"], return_index=True)[1]
        if len(first) == len(self.columns["trace"]):  # all steps are of one kind, without alternatives
            return SubmissionPairs(self.columns, self.words)
        return SubmissionPairs({name: column[first] for name, column in self.columns.items()}, self.words)

    def _patterns(self, rows: Ints) -> RatingPatterns:
        """Return the patterns of these rows by problem, storing equal problems once."""
        problems = np.unique(self.columns["problem"][rows], return_inverse=True)[1]
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


class SubmissionPairs(_GroupedColumns):
    """The first errors of the two headline submissions of each trace; -1 if there is no second one."""

    def __len__(self) -> int:
        return len(self.columns["trace"])

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

    def at_kind(self, kind: str) -> Ints:
        """Return the traces in which at least one submission has its first error at a step of this kind."""
        place = self.words["first_kind"].index(kind)
        return np.flatnonzero((self.columns["first_kind"] == place) | (self.columns["second_kind"] == place))

    def reports(self, rows: Ints | slice = slice(None)) -> ReportArrays:
        """Return the first-error reports of some rows, or of all."""
        ends = self.ends[rows]
        trace, which = np.nonzero(ends >= 0)
        problems = np.unique(self.columns["problem"][rows], return_inverse=True)[1].astype(np.int64)
        return ReportArrays(
            traces=trace.astype(np.int64),
            raters=self.raters[rows][trace, which],
            ends=ends[trace, which],
            is_censored=self.is_censored[rows][trace, which],
            lengths=self.columns["n_steps"][rows],
            problems=problems,
            domains=np.zeros(len(problems), dtype=np.int64),
        )

    def _both(self, first: str, second: str) -> Ints:
        return np.column_stack([self.columns[first], self.columns[second]])


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


_KIND_COLUMNS = ("step_kind", "first_kind", "second_kind")
_COLUMNS = {
    "trace": IntegerColumn("t.trace_id", 8),
    "problem": IntegerColumn("t.problem_id", 8),
    "first_rater": IntegerColumn("t.first_rater_id", 8),
    "second_rater": IntegerColumn("COALESCE(t.second_rater_id, -1)", 8),
    "generation": IntegerColumn("t.generation"),
    # 0 for none, -1 for two different ones.
    "guideline": IntegerColumn("CASE WHEN t.has_two_guidelines THEN -1 ELSE COALESCE(g.version, 0) END"),
    **{name: _step_kind_column(f"t.{name}") for name in _KIND_COLUMNS},
    "is_alternative": IntegerColumn("CASE WHEN t.is_alternative THEN 1 ELSE 0 END"),
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
_EMPTY_COLUMN = np.zeros(0, dtype=np.int8)


def load_tally_arrays(*, project_id: int) -> TallyArrays:
    """Load all tallies of a project."""
    blocks = list(integer_columns.read_blocks(_COLUMNS, _SOURCE, [project_id, project_id]))
    # Column by column, freeing the blocks: otherwise all data would be in memory twice.
    columns = {name: np.concatenate([_EMPTY_COLUMN, *(block.pop(name) for block in blocks)]) for name in _COLUMNS}
    rows = Problem.objects.filter(project_id=project_id).order_by("pk").values_list("pk", "domain")
    problems = list(rows.iterator(chunk_size=10_000))
    domains, places = np.unique([domain for _, domain in problems], return_inverse=True)
    index = np.searchsorted([pk for pk, _ in problems], columns["problem"])
    columns["domain"] = places.astype(np.int32)[index]
    return TallyArrays(columns, {"domain": domains.tolist(), **dict.fromkeys(_KIND_COLUMNS, StepKind.values)})


# Estimates as JSON rows: value, intervals, counts, and the reason for each missing number


SLICE_STATISTICS = ("alpha_nominal", "alpha_ordinal", "gwet_ac1", "pairwise_agreement")  # seven do not fit on a page


def estimate_row(estimate: Estimate) -> dict[str, Any]:
    interval, bootstrap = estimate.interval, estimate.bootstrap
    return {
        "value": estimate.value,
        "reason": estimate.reason,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "interval_reason": estimate.interval_reason,
        "bootstrap": [bootstrap.low, bootstrap.high] if bootstrap else None,
        "bootstrap_reason": estimate.bootstrap_reason,
        "n": estimate.counts.units,
        "n_paired": estimate.counts.pairable,
        "n_problems": estimate.counts.problems,
    }


def step_agreement_rows(patterns: RatingPatterns, *, with_bootstrap: bool = False) -> dict[str, Any]:
    names = agreement.STATISTIC_NAMES if with_bootstrap else SLICE_STATISTICS
    estimates = agreement.estimate_step_statistics(patterns, names=names, with_bootstrap=with_bootstrap)
    return {name: estimate_row(estimate) for name, estimate in estimates.items()}


def label_shares_row(patterns: RatingPatterns) -> dict[str, float]:
    return {str(int(value)): share for value, share in agreement.label_shares(patterns).items()}


def first_error_rows(reports: ReportArrays, *, with_bootstrap: bool = False) -> dict[str, Any]:
    found = agreement.estimate_first_error_agreement(reports, with_bootstrap=with_bootstrap)
    return {
        "exact": estimate_row(found.exact),
        "within_one": estimate_row(found.within_one),
        "has_error_kappa": estimate_row(found.has_error_kappa),
        "pairs": found.pairs,
        "pairs_with_a_censored_report": found.pairs_with_a_censored_report,
    }
