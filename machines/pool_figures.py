"""Figures of the whole pool, from few labels by people and the labels of one machine on all traces.

    error_rate           share of traces with an error
    error_rate_right     the same among traces whose final answer is right
    agreement            share of traces on which the first two people name the same first error, or none
    negative, neutral, positive
                         shares of these labels among labeled steps

Each is {"human", "human_low", "human_high", "value", "low", "high", "tuning", "n_covariates", "saved", "n_labeled",
"n_problems", "n_pool", "reason"}: from labels of people only, and with the machine and what is recorded of every trace
(`stats.prediction_powered`): whether its final answer is wrong or right, its length, and its domain. People are
averaged on each trace, whether or not they agree, because contested traces would be missing from a consensus. Hidden
gold is left out: it was not drawn at random. An unreadable answer counts as the mean of the others: any value is valid.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from machines.passport_data import PassportTrace
from stats import prediction_powered
from stats.prediction_powered import LabeledPool, PoweredEstimate

_MAX_DOMAINS = 3  # the most frequent ones
_LABELS = {"negative": -1, "neutral": 0, "positive": 1}
POOL_FIGURES = ("error_rate", "error_rate_right", "agreement", *_LABELS)


def build_pool_figures(traces: Sequence[PassportTrace], weights: Mapping[int, float]) -> dict[str, Any]:
    pool = [row for row in traces if not row.accepted]
    right = [row for row in pool if row.is_right]
    return {
        "error_rate": _describe(_estimate_error_rate(pool, weights)),
        "error_rate_right": _describe(_estimate_error_rate(right, weights)),
        "agreement": _describe(_estimate_agreement(pool, weights)),
        **{name: _describe(_estimate_label_share(pool, weights, label)) for name, label in _LABELS.items()},
    }


def _estimate_error_rate(rows: Sequence[PassportTrace], weights: Mapping[int, float]) -> PoweredEstimate:
    values = [sum(end < row.n_steps for end in row.people.values()) / max(len(row.people), 1) for row in rows]
    predicted = [_predict_error(row) for row in rows]
    return _estimate(
        rows,
        weights,
        is_labeled=lambda row: bool(row.people),
        values=values,
        sizes=[1.0] * len(rows),
        predicted=predicted,
        predicted_sizes=[1.0 if each is not None else None for each in predicted],
    )


def _estimate_agreement(rows: Sequence[PassportTrace], weights: Mapping[int, float]) -> PoweredEstimate:
    """Compare the first two people: a third label is requested when they differ, so more would count these twice."""
    first_two = [list(row.people.values())[:2] for row in rows]
    predicted = [_predict_agreement(row) for row in rows]
    return _estimate(
        rows,
        weights,
        is_labeled=lambda row: len(row.people) >= 2,
        values=[float(len(ends) == 2 and ends[0] == ends[1]) for ends in first_two],
        sizes=[1.0] * len(rows),
        predicted=predicted,
        predicted_sizes=[1.0 if each is not None else None for each in predicted],
    )


def _predict_agreement(row: PassportTrace) -> float | None:
    """Return how likely two answers of the machine agree on whether there is an error. People agree less on errors, so
    a machine with one answer also helps."""
    if row.end is None:
        return None
    if row.p_error is None:
        return float(row.end == row.n_steps)
    return row.p_error**2 + (1 - row.p_error) ** 2


def _predict_error(row: PassportTrace) -> float | None:
    if row.end is None:
        return None
    return row.p_error if row.p_error is not None else float(row.end < row.n_steps)


def _estimate_label_share(rows: Sequence[PassportTrace], weights: Mapping[int, float], label: int) -> PoweredEstimate:
    n_people = [max(len(row.people) + len(row.censored), 1) for row in rows]
    is_read = [row.end is not None for row in rows]
    return _estimate(
        rows,
        weights,
        is_labeled=lambda row: bool(row.given),
        values=[row.given[label] / n for row, n in zip(rows, n_people, strict=True)],
        sizes=[row.given.total() / n for row, n in zip(rows, n_people, strict=True)],
        predicted=[
            float(sum(each == label for each in row.labels.values())) if read else None
            for row, read in zip(rows, is_read, strict=True)
        ],
        predicted_sizes=[float(len(row.labels)) if read else None for row, read in zip(rows, is_read, strict=True)],
    )


def _estimate(
    rows: Sequence[PassportTrace],
    weights: Mapping[int, float],
    *,
    is_labeled: Callable[[PassportTrace], bool],
    values: Sequence[float],
    sizes: Sequence[float],
    predicted: Sequence[float | None],
    predicted_sizes: Sequence[float | None],
) -> PoweredEstimate:
    return prediction_powered.estimate_with_predictions(
        LabeledPool(
            values=np.array(values, dtype=np.float64),
            sizes=np.array(sizes, dtype=np.float64),
            weights=np.array([weights.get(row.trace, 0.0) if is_labeled(row) else 0.0 for row in rows]),
            predicted=_fill_missing(predicted),
            predicted_sizes=_fill_missing(predicted_sizes),
            in_pool=np.array([row.in_pool for row in rows], dtype=np.bool_),
            problems=np.array([row.problem for row in rows], dtype=np.int64),
            covariates=_list_covariates(rows),
        )
    )


def _list_covariates(rows: Sequence[PassportTrace]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what is recorded of all traces, a column each, the most telling first."""
    domains = Counter(row.domain for row in rows).most_common(_MAX_DOMAINS)
    columns = [
        [row.is_right is False for row in rows],
        [row.is_right is True for row in rows],
        [math.log1p(row.n_steps) for row in rows],
        *([row.domain == domain for row in rows] for domain, _n in domains),
    ]
    return np.array(columns, dtype=np.float64).T


def _fill_missing(values: Sequence[float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    known = [value for value in values if value is not None]
    mean = float(np.mean(known)) if known else 0.0
    return np.array([mean if value is None else value for value in values], dtype=np.float64)


def _describe(found: PoweredEstimate) -> dict[str, Any]:
    human, powered = found.human_interval, found.interval
    return {
        "human": found.human,
        "human_low": human.low if human else None,
        "human_high": human.high if human else None,
        "value": found.value,
        "low": powered.low if powered else None,
        "high": powered.high if powered else None,
        "tuning": found.tuning,
        "n_covariates": found.n_covariates,
        "saved": found.saved_share,
        "n_labeled": found.n_labeled,
        "n_problems": found.n_problems,
        "n_pool": found.n_pool,
        "reason": found.reason,
    }
