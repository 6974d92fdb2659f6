"""The result of a statistic: value, intervals and counts, with a reason for each number that is missing."""

import enum
import math
from dataclasses import dataclass


class Reason(enum.StrEnum):
    """Why a number is missing. Programs read the value; pages translate it."""

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
    FEW_LABELERS = "fewer than 5 raters with labels"
    FEW_PEOPLE = "fewer than 3 people with 30 traces each that others labeled too"
    FEW_BLIND = "fewer than 30 problems that people labeled blind"
    FEW_LABELED = "fewer than 20 problems with labels by people"
    NO_DEPENDENCE = "the machine's answers do not vary"


@dataclass(frozen=True)
class Interval:
    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class UnitCounts:
    """The data behind a value. `problems` counts those with at least one comparable unit."""

    units: int
    pairable: int
    problems: int


@dataclass(frozen=True)
class Estimate:
    """Exactly one of value and reason is set, and likewise for each interval."""

    value: float | None
    counts: UnitCounts
    reason: Reason | None = None
    interval: Interval | None = None
    interval_reason: Reason | None = None
    bootstrap: Interval | None = None
    bootstrap_reason: Reason | None = None

    def __post_init__(self) -> None:
        numbers = (
            (self.value, self.reason),
            (self.interval, self.interval_reason),
            (self.bootstrap, self.bootstrap_reason),
        )
        if any((number is None) == (reason is None) for number, reason in numbers):
            raise ValueError("an estimate needs either a number or a reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"an estimate cannot be {self.value}: set a reason instead")


def defined_estimate(
    value: float, counts: UnitCounts, interval: Interval | Reason, bootstrap: Interval | Reason
) -> Estimate:
    """Return an estimate with a value, and each interval or the reason why it is missing."""
    return Estimate(
        value=value,
        counts=counts,
        interval=interval if isinstance(interval, Interval) else None,
        interval_reason=interval if isinstance(interval, Reason) else None,
        bootstrap=bootstrap if isinstance(bootstrap, Interval) else None,
        bootstrap_reason=bootstrap if isinstance(bootstrap, Reason) else None,
    )


def undefined_estimate(reason: Reason, counts: UnitCounts) -> Estimate:
    """Return an estimate without a value."""
    missing = Reason.UNDEFINED
    return Estimate(value=None, counts=counts, reason=reason, interval_reason=missing, bootstrap_reason=missing)
