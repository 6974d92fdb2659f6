"""The headline of a project as arrays, told apart by what one asks for. Pure: `populations` reads them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labeling.agreement import patterns
from labeling.agreement.arrays import Bools, Ints, alike
from labeling.agreement.patterns import Patterns
from labeling.agreement.reports import Reports
from labeling.quality.tallies import COUNTERS

# What an option shows that counts in each of the counters: ratings of -1, 0 and +1.
_SHAPES = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 2, 0], [0, 1, 1], [0, 0, 2]])
Keys = tuple[Ints, Sequence[Any]]  # of each row a place in the list of keys


@dataclass(frozen=True)
class Tallied:
    """One place a trace and kind of step in every column; `words` are what domain, step_kind, first_kind and
    second_kind are places in, -1 being none of them."""

    columns: Mapping[str, Ints]
    words: Mapping[str, Sequence[str]]

    def only(self, traces: Collection[int]) -> "Tallied":
        chosen = np.isin(self.columns["trace"], np.fromiter(traces, dtype=np.int64))
        return Tallied({name: column[chosen] for name, column in self.columns.items()}, self.words)

    def steps(self, by: str) -> dict[Any, Patterns]:
        """Patterns of step ratings for each key of a dimension."""
        places, keys = _keys(self.columns, self.words, by)
        found = _grouped(places, len(keys))
        return {keys[place]: self._patterns(rows) for place, rows in found}

    def all_steps(self) -> Patterns:
        return self._patterns(np.arange(len(self.columns["trace"])))

    @cached_property
    def meetings(self) -> "Meetings":
        """One row a trace, whatever kinds its steps are of."""
        first = np.unique(self.columns["trace"], return_index=True)[1]
        if len(first) == len(self.columns["trace"]):  # all steps are of one kind, as nearly everywhere
            return Meetings(self.columns, self.words)
        return Meetings({name: self.columns[name][first] for name in _OF_TRACES}, self.words)

    @cached_property
    def _problems(self) -> Ints:
        return np.unique(self.columns["problem"], return_inverse=True)[1]

    def _patterns(self, rows: Ints) -> Patterns:
        """Of these rows, by problem; problems that are alike are kept once."""
        problems = np.unique(self._problems[rows], return_inverse=True)[1]
        summed = [np.bincount(problems, weights=self.columns[name][rows]) for name in COUNTERS]
        kinds, kind = alike(np.stack(summed, axis=1))
        problem, shape = np.nonzero(kinds)
        return Patterns(
            values=patterns.SCALE,
            counts=_SHAPES[shape],
            units=kinds[problem, shape].astype(np.int64),
            problems=problem.astype(np.int64),
            copies=np.bincount(kind, minlength=len(kinds)),
        )


@dataclass(frozen=True)
class Meetings:
    """Where both readings of each trace saw the first error; -1 where nobody has read it a second time."""

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
        """The rows of each key of a dimension."""
        places, keys = _keys(self.columns, self.words, dimension)
        return {keys[place]: rows for place, rows in _grouped(places, len(keys))}

    def at_kind(self, kind: str) -> Ints:
        """Traces in which at least one of the two saw the first error at a step of this kind."""
        place = self.words["first_kind"].index(kind)
        return np.flatnonzero((self.columns["first_kind"] == place) | (self.columns["second_kind"] == place))

    def every(self) -> Ints:
        return np.arange(len(self))

    def reports(self, rows: Ints) -> Reports:
        """Those of some traces, by which agreement on the first error is computed."""
        ends = self.ends[rows]
        trace, turn = np.nonzero(ends >= 0)
        problems = np.unique(self.columns["problem"][rows], return_inverse=True)[1].astype(np.int64)
        return Reports(
            traces=trace.astype(np.int64),
            raters=self.raters[rows][trace, turn],
            ends=ends[trace, turn],
            is_censored=self.is_censored[rows][trace, turn],
            lengths=self.n_steps[rows],
            problems=problems,
            domains=np.zeros(len(problems), dtype=np.int64),
        )

    def _both(self, first: str, second: str) -> Ints:
        return np.column_stack([self.columns[first], self.columns[second]])


_OF_TRACES = (
    *("trace", "problem", "domain", "generation", "guideline", "n_steps", "first_kind", "second_kind"),
    *("first_end", "second_end", "is_first_censored", "is_second_censored", "first_rater", "second_rater"),
)


def _keys(columns: Mapping[str, Ints], words: Mapping[str, Sequence[str]], by: str) -> Keys:
    if by == "pair":
        return _pairs(columns["first_rater"], columns["second_rater"])
    if by in words:
        return columns[by], words[by]
    keys, places = np.unique(columns[by], return_inverse=True)
    return places, keys.tolist()


def _pairs(first: Ints, second: Ints) -> Keys:
    """Of two raters, whoever came first; of a trace that one alone has read no place."""
    raters, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    one, other = places.reshape(2, -1)
    met, at = np.unique(np.minimum(one, other) * len(raters) + np.maximum(one, other), return_inverse=True)
    names = [tuple(raters[list(divmod(pair, len(raters)))].tolist()) for pair in met.tolist()]
    return np.where(second < 0, -1, at), names


def _grouped(places: Ints, n: int) -> list[tuple[int, Ints]]:
    """Of each place that occurs, its rows."""
    order = np.argsort(places, kind="stable")
    ends = np.searchsorted(places[order], np.arange(n + 1))
    return [(place, order[ends[place] : ends[place + 1]]) for place in range(n) if ends[place] < ends[place + 1]]
