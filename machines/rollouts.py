"""Monte Carlo values of the prefixes of a trace: which rollouts to ask for next, and what they say about the steps.

A prefix is the first k steps of a trace; a rollout continues it to an answer, which a checker compares with the
reference answer. The value of a prefix is the share of right answers among those that could be read (soft). A step is
wrong if the value of the prefix that ends with it is not above the threshold: 0 means that no rollout was right (hard).
The value of the whole trace is known from its own answer, without rollouts, if that can be read.

`every_step` values every prefix (Math-Shepherd). `binary` looks for the first error only: if the answer is wrong, it
halves the range between a prefix that is still right and one that no longer is (OmegaPRM). It takes about log2 of the
steps instead of all of them, and assumes that a trace does not recover after its first error.

With `stops_early`, a prefix gets no more rollouts once its side of the threshold is settled: at threshold 0 by the
first right answer, otherwise by a Clopper-Pearson interval whose error is divided by the number of looks, so that the
decision is valid at whatever look it stops (Bonferroni). The soft value then rests on few rollouts and is biased,
because the answers themselves decided when to stop.

Progress is the value after a step minus the value before it, under the policy that made the rollouts, the prover (PAV).

P. Wang et al. (2024), "Math-Shepherd", arXiv:2312.08935; L. Luo et al. (2024), "Improve mathematical reasoning in
language models by automated process supervision" (OmegaPRM), arXiv:2406.06592; A. Setlur et al. (2024), "Rewarding
progress" (PAV), arXiv:2410.08146; C. J. Clopper, E. S. Pearson (1934), doi:10.1093/biomet/26.4.404.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

from machines.answers import CheckerKind
from stats.estimates import Interval
from stats.intervals import clopper_pearson_interval, difference_interval

_LEVEL = 0.95


class SearchKind(StrEnum):
    EVERY_STEP = "every_step"
    BINARY = "binary"


@dataclass(frozen=True)
class RolloutOptions:
    """What a Monte Carlo rater needs besides its endpoint and its sampler."""

    checker: str = CheckerKind.NUMBER
    pattern: str = ""  # of the checker "regex"
    checker_address: str = ""  # of the checker "http"
    search: str = SearchKind.EVERY_STEP
    threshold: float = 0.0
    stops_early: bool = False
    measures_progress: bool = False
    separator: str = "\n\n"  # between two steps
    stop: str = "\nProblem:"  # text at which the endpoint ends a rollout; of the built-in prompt


@dataclass
class PrefixRollouts:
    """The rollouts from one prefix by their numbers: right, wrong, or None if the answer cannot be read."""

    n_wanted: int
    options: RolloutOptions
    answers: dict[int, bool | None] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    own_answer: bool | None = None  # the trace ends here, and its own answer is right or wrong

    @property
    def n_right(self) -> int:
        return sum(answer is True for answer in self._counted()) + (self.own_answer is True)

    @property
    def n_read(self) -> int:
        return sum(answer is not None for answer in self._counted()) + (self.own_answer is not None)

    @property
    def value(self) -> float | None:
        """The share of right answers. None if fewer than half of the answers can be read."""
        return self.n_right / self.n_read if self.n_read and 2 * self.n_read >= len(self._counted()) else None

    @property
    def is_settled(self) -> bool:
        if self.own_answer is not None or len(self.answers) >= self.n_wanted:
            return True
        return self.options.stops_early and is_side_settled(
            self.n_right, self.n_read, self.n_wanted, self.options.threshold
        )

    @property
    def is_right(self) -> bool | None:
        """Whether the value is above the threshold; None if there is no value."""
        return None if self.value is None else self.value > self.options.threshold

    def list_missing(self) -> Iterator[int]:
        """Return the numbers of the rollouts to ask for now: one at a time if the next one may not be needed."""
        if self.is_settled or (self.options.stops_early and self.asked):
            return
        missing = [number for number in range(self.n_wanted) if number not in self.answers]
        yield from missing[: 1 if self.options.stops_early else None]

    def _counted(self) -> list[bool | None]:
        """Return the answers in the order of their numbers, so that the order of arrival changes nothing. Rollouts of a
        trial do not count beside the trace's own answer."""
        return [] if self.own_answer is not None else [answer for _, answer in sorted(self.answers.items())]


@lru_cache(maxsize=4096)
def is_side_settled(n_right: int, n_read: int, n_wanted: int, threshold: float) -> bool:
    """Return whether these answers settle on which side of the threshold the value is."""
    if threshold == 0:
        return n_right > 0
    if not n_read:
        return False
    level = 1 - (1 - _LEVEL) / n_wanted
    interval = clopper_pearson_interval(right=n_right, n=n_read, level=level)
    return interval.low > threshold or interval.high <= threshold


@dataclass(frozen=True)
class PrefixValue:
    """The value of the first `n_steps` steps."""

    n_steps: int
    n_right: int
    n_read: int

    @property
    def value(self) -> float:
        return self.n_right / self.n_read


@dataclass(frozen=True)
class RolloutFinding:
    """What the rollouts of a trace say. Without `is_decided`, too few answers could be read to label the trace."""

    is_decided: bool
    first_error: int | None
    ratings: Mapping[int, int]  # by position
    values: Sequence[PrefixValue]


class TraceRollouts:
    """The rollouts of one trace. `ends` are the positions of its rateable steps: the prefixes end with them."""

    def __init__(self, ends: Sequence[int], n_wanted: int, options: RolloutOptions, own_answer: bool | None) -> None:
        self._ends = list(ends)
        self._options = options
        sizes = ([0] if options.measures_progress else []) + [position + 1 for position in self._ends]
        self.prefixes = {size: PrefixRollouts(n_wanted, options) for size in sizes}
        if self._ends:
            self.prefixes[self._ends[-1] + 1].own_answer = own_answer

    @property
    def has_own_answer(self) -> bool:
        """Whether the trace itself states an answer that is known to be right or wrong: evidence like a rollout."""
        return any(prefix.own_answer is not None for prefix in self.prefixes.values())

    def record(self, n_steps: int, number: int, answer: bool | None) -> None:
        prefix = self.prefixes.get(n_steps)
        if prefix is not None:
            prefix.asked.discard(number)
            prefix.answers[number] = answer

    def list_missing(self) -> list[tuple[int, int]]:
        """Return the rollouts to ask for now, as prefix and number, and note them as asked for."""
        missing = []
        for size in self._find_open():
            prefix = self.prefixes[size]
            for number in list(prefix.list_missing()):
                if number not in prefix.asked:
                    prefix.asked.add(number)
                    missing.append((size, number))
        return missing

    @property
    def is_complete(self) -> bool:
        return not self._find_open()

    def _find_open(self) -> list[int]:
        """Return the prefixes that need rollouts now."""
        if self._options.search == SearchKind.EVERY_STEP or self._options.measures_progress:
            return [size for size, prefix in self.prefixes.items() if not prefix.is_settled]
        at, _ = self._search()
        return [] if at is None else [at]

    def _search(self) -> tuple[int | None, int | None]:
        """Return the prefix to value next, or the index of the first wrong step (None, if there is none)."""
        if not self._ends:
            return None, None
        sizes = [position + 1 for position in self._ends]
        low, high = -1, len(sizes) - 1  # the prefix `low` is right, the prefix `high` is not
        last = self.prefixes[sizes[high]]
        if not last.is_settled:
            return sizes[high], None
        if last.is_right is not False:
            return None, None
        while high - low > 1:
            middle = (low + high) // 2
            prefix = self.prefixes[sizes[middle]]
            if not prefix.is_settled:
                return sizes[middle], None
            if prefix.is_right is None:
                return None, None
            low, high = (middle, high) if prefix.is_right else (low, middle)
        return None, high

    def conclude(self) -> RolloutFinding:
        values = [
            PrefixValue(size, prefix.n_right, prefix.n_read)
            for size, prefix in sorted(self.prefixes.items())
            if prefix.value is not None
        ]
        is_binary = self._options.search == SearchKind.BINARY
        ratings = self._rate_by_search() if is_binary else self._rate_every_step()
        if ratings is None:
            return RolloutFinding(is_decided=False, first_error=None, ratings={}, values=values)
        first_error = min((position for position, rating in ratings.items() if rating == -1), default=None)
        return RolloutFinding(is_decided=True, first_error=first_error, ratings=ratings, values=values)

    def _rate_every_step(self) -> dict[int, int] | None:
        """Rate the steps with a value. Unless every step before the first error has one, it is unknown."""
        ratings: dict[int, int] = {}
        for position in self._ends:
            is_right = self.prefixes[position + 1].is_right
            if is_right is None and -1 not in ratings.values():
                return None
            if is_right is not None:
                ratings[position] = 1 if is_right else -1
        return ratings or None

    def _rate_by_search(self) -> dict[int, int] | None:
        """Rate the steps up to the first error."""
        if not self._ends or self.prefixes[self._ends[-1] + 1].is_right is None:
            return None
        if self.prefixes[self._ends[-1] + 1].is_right:
            return dict.fromkeys(self._ends, 1)
        _, found = self._search()
        if found is None:
            return None
        return {position: -1 if at == found else 1 for at, position in enumerate(self._ends[: found + 1])}


@dataclass(frozen=True)
class StepProgress:
    """The progress of a step: the value of the prefix that ends with it, minus the value of the prefix before."""

    position: int
    before: PrefixValue
    after: PrefixValue

    @property
    def advantage(self) -> float:
        return self.after.value - self.before.value

    @property
    def interval(self) -> Interval:
        return difference_interval(
            right=self.after.n_right,
            n=self.after.n_read,
            other_right=self.before.n_right,
            other_n=self.before.n_read,
            level=_LEVEL,
        )


def measure_progress(values: Sequence[PrefixValue]) -> list[StepProgress]:
    """Return the progress of each step between two valued prefixes; empty without the value of the problem alone."""
    ordered = sorted(values, key=lambda each: each.n_steps)
    if not ordered or ordered[0].n_steps != 0:
        return []
    return [StepProgress(after.n_steps - 1, before, after) for before, after in pairwise(ordered)]
