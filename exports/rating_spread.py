"""How ratings are distributed, and where first errors are. Counted while a shard is written, from the compact rows; the
database counts the other rows. Reads only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct, field

import rawsql
from formats.rows import CompactRow, ExportRow, split_turns
from labeling.models import Manifest
from labeling.models.assignment import FinishReason

CUT_OFF = (FinishReason.GIVE_UP.value, FinishReason.BAD_PROBLEM.value)
# The inner query has a row per submission: the number of each rating, the position of the first error among the trace's
# own steps (the first options), and whether the submission ended early.
_COUNT_SUBMISSIONS = """SELECT place, was_cut_off, COUNT(*), SUM(negative), SUM(neutral), SUM(positive) FROM (
  SELECT COUNT(*) FILTER (WHERE j.rating = -1) AS negative,
    COUNT(*) FILTER (WHERE j.rating = 0) AS neutral,
    COUNT(*) FILTER (WHERE j.rating = 1) AS positive,
    MIN(s.position) FILTER (WHERE j.rating = -1 AND o.position = 0) AS place,
    BOOL_OR(u.finish_reason IN ('give_up', 'bad_problem')) AS was_cut_off
  FROM labeling_manifestrow m
  JOIN labeling_submission u ON u.id = m.submission_id
  JOIN labeling_stepreview t ON t.assignment_id = u.assignment_id AND t.revision = u.revision
  JOIN labeling_step s ON s.id = t.step_id
  LEFT JOIN labeling_judgment j ON j.turn_id = t.id
  LEFT JOIN labeling_option o ON o.id = j.option_id
  WHERE m.manifest_id = %(manifest)s AND m.position = ANY (%(positions)s) GROUP BY m.position) AS submission
GROUP BY place, was_cut_off"""


class RatingCounts(NamedTuple):
    first_error: int | None
    negative: int
    neutral: int
    positive: int


class RatingSpread(Struct):
    """`labels` by rating; `first_errors` by position from 0, plus `none` (no error) and `cut_off` (ended early)."""

    labels: dict[str, int] = field(default_factory=lambda: {"-1": 0, "0": 0, "1": 0})
    first_errors: dict[str, int] = field(default_factory=dict)

    def count(self, frozen: Manifest, rows: Iterable[ExportRow]) -> None:
        other_positions = []
        counts: Counter[tuple[RatingCounts, bool]] = Counter()
        for row in rows:
            if row.plain is not None:
                counts[_count_ratings(row.plain), row.facts.finish_reason in CUT_OFF] += 1
            elif row.facts.submission is not None:
                other_positions.append(row.facts.position)
        for (ratings, was_cut_off), n in counts.items():
            self._add(ratings.first_error, was_cut_off, n, [n * each for each in ratings[1:]])
        for first_error, was_cut_off, n, *sums in _query_counts(frozen, other_positions):
            self._add(first_error, was_cut_off, n, sums)

    def _add(self, first_error: int | None, was_cut_off: bool, n: int, ratings: Sequence[int]) -> None:
        key = str(first_error) if first_error is not None else "cut_off" if was_cut_off else "none"
        self.first_errors[key] = self.first_errors.get(key, 0) + n
        for rating, n_ratings in zip(("-1", "0", "1"), ratings, strict=True):
            self.labels[rating] += int(n_ratings)


def merge_spreads(spreads: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Add up the spreads of all shards."""
    total = {"labels": Counter({"-1": 0, "0": 0, "1": 0}), "first_errors": Counter[str]()}
    for spread in spreads:
        for part, counts in total.items():
            counts.update(spread[part])
    return {part: dict(counts) for part, counts in total.items()}


def _query_counts(frozen: Manifest, positions: Sequence[int]) -> list[tuple[Any, ...]]:
    if not positions:
        return []
    return rawsql.fetch_rows(_COUNT_SUBMISSIONS, {"manifest": frozen.pk, "positions": sorted(set(positions))})


def _count_ratings(plain: CompactRow) -> RatingCounts:
    if not plain.more:
        return _count_cells(plain.cells)
    turns = split_turns(plain)
    ratings = Counter(rating for turn in turns for _option, rating, _flagged in turn.shown)
    errors = (turn.position for turn in turns for option, rating, _ in turn.shown if option == 0 and rating == -1)
    return RatingCounts(next(errors, None), ratings[-1], ratings[0], ratings[1])


@lru_cache(maxsize=2000)
def _count_cells(cells: str) -> RatingCounts:
    """Count a trace in which each step has one option, so that each cell is one rating. Many rows have equal cells."""
    ratings = [cell.split(",", 3)[2] for cell in cells.split(";")]
    first_error = ratings.index("-1") if "-1" in ratings else None
    return RatingCounts(first_error, ratings.count("-1"), ratings.count("0"), ratings.count("1"))
