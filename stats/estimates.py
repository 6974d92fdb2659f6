"""What a statistic answers: a value or the reason why there is none, its interval or the reason why not, its counts."""

import enum
import math
from dataclasses import asdict, dataclass
from typing import Any


class Reason(enum.StrEnum):
    """Why a number is missing. The value is what programs read; pages translate it."""

    NO_PAIRS = "no unit has two ratings"
    NO_VARIATION = "no variation: every rating is of one category"
    NOT_NUMBERS = "the labels are not numbers"
    NO_ORDER = "the labels have no order"
    NO_CASES = "nothing to count: no case of this kind"
    FEW_PROBLEMS = "fewer than 5 problems"
    FEW_FOR_BOOTSTRAP = "fewer than 30 problems"
    RESTS_ON_ONE = "without one of the problems the value is undefined"
    NO_SPREAD = "all problems give the same value: there is no spread to measure"
    UNDEFINED = "the value is undefined"
    DRAWS_UNDEFINED = "in some of the resamples the value is undefined"
    FEW_GOLD = "too few gold traces"
    BELOW_PROMISE = "no threshold keeps the promise on gold"
    NOT_DRAWN = "no bootstrap is drawn for this statistic"
    FEW_RATERS = "fewer than 5 screened raters"


@dataclass(frozen=True)
class Interval:
    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class UnitCounts:
    """What the value was computed from. `problems` are those with at least one comparable unit."""

    units: int
    pairable: int
    problems: int


@dataclass(frozen=True)
class Estimate:
    """A value is there, or a reason; never neither, never both. The same holds for each interval."""

    value: float | None
    counts: UnitCounts
    reason: Reason | None = None
    interval: Interval | None = None
    interval_reason: Reason | None = None
    bootstrap: Interval | None = None
    bootstrap_reason: Reason | None = None

    def __post_init__(self) -> None:
        told = (
            (self.value, self.reason),
            (self.interval, self.interval_reason),
            (self.bootstrap, self.bootstrap_reason),
        )
        if any((found is None) == (reason is None) for found, reason in told):
            raise ValueError("an estimate says a number or why there is none, never neither and never both")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"an estimate cannot be {self.value}: give the reason instead")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def undefined_estimate(reason: Reason, counts: UnitCounts) -> Estimate:
    """The estimate of a statistic that has no value."""
    return Estimate(
        value=None,
        counts=counts,
        reason=reason,
        interval_reason=Reason.UNDEFINED,
        bootstrap_reason=Reason.UNDEFINED,
    )
