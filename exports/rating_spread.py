"""What readings say: how their ratings spread, and where their first errors are. Counted while they are written, from
the pieces of text that they are read as; those that are not plain are counted by the database. Reads only.
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
# A row for each submission: how often each rating was given, the place of the first error on the trace's own path (its
# first options; of a live trace what was chosen has no such place), and whether the reading was cut off.
_COUNT_READING = """SELECT COUNT(*) FILTER (WHERE j.rating = -1) AS negative,
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
WHERE m.manifest_id = %(manifest)s AND m.position = ANY (%(positions)s) GROUP BY m.position"""
_COUNT_TOGETHER = f"""SELECT place, was_cut_off, COUNT(*), SUM(negative), SUM(neutral), SUM(positive)
FROM ({_COUNT_READING}) AS reading GROUP BY place, was_cut_off"""  # noqa: S608  made of constants


class RatingCounts(NamedTuple):
    place: int | None  # of the first error
    negative: int
    neutral: int
    positive: int


class RatingSpread(Struct):
    """`labels` by rating; `first_errors` by position from 0, with `none` and `cut_off` for readings without one."""

    labels: dict[str, int] = field(default_factory=lambda: {"-1": 0, "0": 0, "1": 0})
    first_errors: dict[str, int] = field(default_factory=dict)

    def count(self, frozen: Manifest, readings: Iterable[ExportRow]) -> None:
        others = []
        found: Counter[tuple[RatingCounts, bool]] = Counter()
        for reading in readings:
            if reading.plain is not None:
                found[_count_ratings(reading.plain), reading.facts.finish_reason in CUT_OFF] += 1
            elif reading.facts.submission is not None:
                others.append(reading.facts.position)
        for (said, was_cut_off), n in found.items():
            self._add(said.place, was_cut_off, n, [n * each for each in said[1:]])
        for place, was_cut_off, n, *ratings in _query_counts(frozen, others):
            self._add(place, was_cut_off, n, ratings)

    def _add(self, place: int | None, was_cut_off: bool, n: int, ratings: Sequence[int]) -> None:
        name = str(place) if place is not None else "cut_off" if was_cut_off else "none"
        self.first_errors[name] = self.first_errors.get(name, 0) + n
        for key, more in zip(("-1", "0", "1"), ratings, strict=True):
            self.labels[key] += int(more)


def merge_spreads(spreads: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Those of all shards, as one."""
    total = {"labels": Counter({"-1": 0, "0": 0, "1": 0}), "first_errors": Counter[str]()}
    for spread in spreads:
        for part, counts in total.items():
            counts.update(spread[part])
    return {part: dict(counts) for part, counts in total.items()}


def _query_counts(frozen: Manifest, positions: Sequence[int]) -> list[tuple[Any, ...]]:
    if not positions:
        return []
    return rawsql.fetch_rows(_COUNT_TOGETHER, {"manifest": frozen.pk, "positions": sorted(set(positions))})


def _count_ratings(plain: CompactRow) -> RatingCounts:
    if not plain.more:
        return _count_cells(plain.cells)
    turns = split_turns(plain)
    given = Counter(rating for turn in turns for _place, rating, _flagged in turn.shown)
    errors = (turn.position for turn in turns for place, rating, _ in turn.shown if place == 0 and rating == -1)
    return RatingCounts(next(errors, None), given[-1], given[0], given[1])


@lru_cache(maxsize=2000)
def _count_cells(cells: str) -> RatingCounts:
    """Each step has one option, and each cell a turn's only rating: many readings say the same."""
    given = [cell.split(",", 3)[2] for cell in cells.split(";")]
    place = given.index("-1") if "-1" in given else None
    return RatingCounts(place, given.count("-1"), given.count("0"), given.count("1"))
