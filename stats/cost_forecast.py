"""The cost of the labels that remain, with a prediction interval.

    labels   L = slots + unfinished × f             f = additional labels per finished trace
    cost     C = L × c                              c = pay / labels, a ratio over raters
    var C    ≈ 2 L² var(c) + c² (unfinished × f + unfinished² f / finished)

var(c) is a jackknife over raters. It counts twice, once for the estimate and once for the future: the interval is for
remaining work by another draw of the same kind of raters. Additional labels count as Poisson, in the past and in the
future. Quantiles are Student's t.

W. G. Cochran (1977), "Sampling techniques", chapter 6 (ratio estimators).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stats import intervals
from stats.estimates import Reason

MIN_RATERS = 5


class RemainingWork(NamedTuple):
    slots: int  # labels that are already scheduled or in progress
    unfinished: int  # traces that may still need additional labels
    finished: int  # traces that got all of their labels
    further: int  # labels that those got beyond the first round


@dataclass(frozen=True)
class CostForecast:
    """`reason` says why there is no value, `interval_reason` why there is no interval."""

    labels: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: Reason | None = None
    interval_reason: Reason | None = None


def forecast_cost(
    *, pay: Sequence[float], labels: Sequence[int], work: RemainingWork, level: float = 0.95
) -> CostForecast:
    """Forecast the cost from the pay and the labels of each rater."""
    paid, read = np.asarray(pay, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    rate = work.further / work.finished if work.finished else 0.0
    expected = work.slots + work.unfinished * rate
    if read.sum() == 0:
        return CostForecast(expected, reason=Reason.NO_CASES)
    per_label = paid.sum() / read.sum()
    value = float(expected * per_label)
    others = read.sum() - read
    if len(read) < MIN_RATERS or (others <= 0).any():
        return CostForecast(expected, value, interval_reason=Reason.FEW_LABELERS)
    without_one, n = (paid.sum() - paid) / others, len(read)
    var_cost = (n - 1) / n * np.square(without_one - without_one.mean()).sum()
    var_labels = work.unfinished * rate + (work.unfinished**2 * rate / work.finished if work.finished else 0.0)
    half = intervals.t_quantile(p=(1 + level) / 2, df=n - 1) * np.sqrt(
        2 * expected**2 * var_cost + per_label**2 * var_labels
    )
    return CostForecast(expected, value, max(0.0, float(value - half)), float(value + half))
