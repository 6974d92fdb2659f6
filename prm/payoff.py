"""Does choosing pay? PRMs trained on as many traces of the policy arm as of the uniform arm, judged on the reserve.

    labels   both arms give equally many traces
    hours    the uniform arm gives as many as can be read in the policy's time

The figure is the length-matched risk-set AUC, policy minus uniform, averaged over three sizes. What was read before the
first batch belongs to both. Each replicate draws the traces of each arm and the problems of the reserve anew; the
interval holds 95 % of the replicates. Pure arithmetic on what `of_generation` reads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeling.agreement.arrays import Bools, Floats, Ints
from prm.backends import builtin
from prm.backends.builtin import Seen, TooFewLabels
from prm.evaluation import concordance
from prm.evaluation.steps import Labelled

LEAST = 20  # traces of each arm
REPLICATES = 20
SIZES = 3
BASE, UNIFORM, POLICY = 0, 1, 2
_WORTHWHILE = 0.005  # a batch that adds less than this is hardly worth its reading


@dataclass(frozen=True)
class Learnt:
    """Labelled steps outside the reserve: features, labels, the trace of each; per trace arm and reading seconds."""

    seen: Seen
    is_wrong: Bools
    traces: Ints
    arms: Ints
    seconds: Floats

    def train(self, chosen: Ints) -> builtin.Scorer:
        """Of these traces, each as often as it was drawn."""
        order = np.argsort(self.traces, kind="stable")
        starts = np.searchsorted(self.traces[order], chosen)
        ends = np.searchsorted(self.traces[order], chosen, side="right")
        pieces = [order[start:end] for start, end in zip(starts, ends, strict=True)]
        rows = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
        return builtin.train(builtin.keep(self.seen, rows), self.is_wrong[rows])


@dataclass(frozen=True)
class Reserve:
    seen: Seen
    steps: Labelled


def unmeasurable(learnt: Learnt, reserve: Reserve) -> str:
    """Why nothing can be said yet; empty where it can."""
    smallest = min(int((learnt.arms == arm).sum()) for arm in (UNIFORM, POLICY))
    if smallest < LEAST:
        return f"{smallest} labelled traces in the smaller arm, {LEAST} are needed"
    if int(reserve.steps.is_wrong.sum()) < 10:
        return f"{int(reserve.steps.is_wrong.sum())} errors in the labelled reserve, 10 are needed"
    return ""


def measure(learnt: Learnt, reserve: Reserve, *, batch: int, seed: int) -> Iterator[dict[str, Any]]:
    """Partial figures while it goes on; the last one is whole."""
    random = np.random.default_rng(seed)
    top = min(int((learnt.arms == arm).sum()) for arm in (UNIFORM, POLICY))
    sizes = np.unique(np.linspace(0, top, SIZES + 1).round().astype(int)[1:])
    rows: list[Floats] = []
    for _ in range(REPLICATES):
        row = _replicate(learnt, reserve, sizes, random)
        if row is not None:
            rows.append(row)
        yield _told(np.array(rows), sizes, learnt, batch) if len(rows) > 1 else {}


def _replicate(learnt: Learnt, reserve: Reserve, sizes: Ints, random: np.random.Generator) -> Floats | None:
    """(sizes, policy | uniform | uniform in the same time); None where one of them had nothing to learn from."""
    again = _problems_drawn(reserve.steps, random)
    base = np.flatnonzero(learnt.arms == BASE)
    pace = _seconds(learnt, POLICY) / max(_seconds(learnt, UNIFORM), 1e-9)
    try:
        return np.array(
            [
                [
                    _figure(learnt, reserve, again, np.concatenate([base, _drawn(learnt, arm, n, random)]))
                    for arm, n in ((POLICY, size), (UNIFORM, size), (UNIFORM, max(round(size * pace), 1)))
                ]
                for size in sizes.tolist()
            ]
        )
    except TooFewLabels:
        return None


def _drawn(learnt: Learnt, arm: int, n: int, random: np.random.Generator) -> Ints:
    return np.asarray(random.choice(np.flatnonzero(learnt.arms == arm), size=n), dtype=np.int64)


def _seconds(learnt: Learnt, arm: int) -> float:
    return float(learnt.seconds[learnt.arms == arm].mean())


def _figure(learnt: Learnt, reserve: Reserve, again: Ints, chosen: Ints) -> float:
    p_wrong = learnt.train(chosen).p_wrong(reserve.seen)
    return concordance.length_matched_auc(reserve.steps.put(p_wrong).take(again)).value or 0.5


def _problems_drawn(steps: Labelled, random: np.random.Generator) -> Ints:
    """Rows of as many problems as there are, drawn with replacement."""
    order = np.argsort(steps.problems, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(steps.problems[order])) + 1)
    return np.concatenate([groups[n] for n in random.integers(0, len(groups), len(groups))])


def _told(found: Floats, sizes: Ints, learnt: Learnt, batch: int) -> dict[str, Any]:
    """`found` is (replicates, sizes, policy | uniform | uniform in the same time)."""
    mean = found.mean(axis=0)
    return {
        "points": [
            {"n": int(size), "policy": float(row[0]), "uniform": float(row[1])}
            for size, row in zip(sizes, mean, strict=True)
        ],
        "labels": _spread((found[:, :, 0] - found[:, :, 1]).mean(axis=1)),
        "hours": _spread((found[:, :, 0] - found[:, :, 2]).mean(axis=1)),
        "seconds": {"policy": _seconds(learnt, POLICY), "uniform": _seconds(learnt, UNIFORM)},
        "replicates": len(found),
        "hint": _hint(found[:, :, 0], sizes, int((learnt.arms == BASE).sum()), batch),
    }


def _spread(values: Floats) -> dict[str, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return {"gain": float(values.mean()), "low": float(low), "high": float(high)}


def _hint(policy: Floats, sizes: Ints, base: int, batch: int) -> dict[str, Any]:
    """What the next batch should add, from a line through the curve over log n."""
    if len(sizes) < 2:
        return {}
    x = np.log(sizes + base + 1.0)
    slopes = ((policy - policy.mean(axis=1, keepdims=True)) @ (x - x.mean())) / ((x - x.mean()) ** 2).sum()
    more = slopes * np.log1p(batch / (sizes[-1] + base))
    told = _spread(more)
    return {**told, "batch": batch, "says_stop": told["high"] < _WORTHWHILE}


def without_gain(told: Sequence[dict[str, Any]], *, least: int) -> bool:
    """Whether the last so many generations that could be measured all showed the uniform arm unbeaten."""
    measured = [each for each in told if "labels" in each][-least:]
    return len(measured) == least and all(min(each["labels"]["gain"], each["hours"]["gain"]) <= 0 for each in measured)
