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
from django.db.models import Sum

from labeling.models import Manifest, Submission, TraceDraw
from prm import held_out_evaluation
from prm import trace_labels as labels_
from prm.backends import builtin
from prm.backends.builtin import StepFeatures, TooFewLabels
from prm.evaluation import concordance
from prm.evaluation.labeled_steps import LabeledSteps
from prm.trace_labels import TraceLabels
from stats.arrays import Bools, Floats, Ints

MIN_TRACES_PER_ARM = 20  # traces of each arm
REPLICATES = 20
SIZES = 3
BASE, UNIFORM, POLICY = 0, 1, 2
_WORTHWHILE = 0.005  # a batch that adds less than this is hardly worth its reading


@dataclass(frozen=True)
class LabeledTraining:
    """Labelled steps outside the reserve: features, labels, the trace of each; per trace arm and reading seconds."""

    seen: StepFeatures
    is_wrong: Bools
    traces: Ints
    arms: Ints
    seconds: Floats

    def train(self, chosen: Ints) -> builtin.BuiltinScorer:
        """Of these traces, each as often as it was drawn."""
        order = np.argsort(self.traces, kind="stable")
        starts = np.searchsorted(self.traces[order], chosen)
        ends = np.searchsorted(self.traces[order], chosen, side="right")
        pieces = [order[start:end] for start, end in zip(starts, ends, strict=True)]
        rows = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
        return builtin.train_scorer(builtin.take_steps(self.seen, rows), self.is_wrong[rows])


@dataclass(frozen=True)
class HeldOutSteps:
    seen: StepFeatures
    steps: LabeledSteps


def why_unmeasurable(learnt: LabeledTraining, reserve: HeldOutSteps) -> str:
    """Why nothing can be said yet; empty where it can."""
    smallest = min(int((learnt.arms == arm).sum()) for arm in (UNIFORM, POLICY))
    if smallest < MIN_TRACES_PER_ARM:
        return f"{smallest} labelled traces in the smaller arm, {MIN_TRACES_PER_ARM} are needed"
    if int(reserve.steps.is_wrong.sum()) < 10:
        return f"{int(reserve.steps.is_wrong.sum())} errors in the labelled reserve, 10 are needed"
    return ""


def measure_payoff(
    learnt: LabeledTraining, reserve: HeldOutSteps, *, batch: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Partial figures while it goes on; the last one is whole."""
    random = np.random.default_rng(seed)
    top = min(int((learnt.arms == arm).sum()) for arm in (UNIFORM, POLICY))
    sizes = np.unique(np.linspace(0, top, SIZES + 1).round().astype(int)[1:])
    rows: list[Floats] = []
    for _ in range(REPLICATES):
        row = _replicate(learnt, reserve, sizes, random)
        if row is not None:
            rows.append(row)
        yield _summarize(np.array(rows), sizes, learnt, batch) if len(rows) > 1 else {}


def _replicate(
    learnt: LabeledTraining, reserve: HeldOutSteps, sizes: Ints, random: np.random.Generator
) -> Floats | None:
    """(sizes, policy | uniform | uniform in the same time); None where one of them had nothing to learn from."""
    again = _resample_problems(reserve.steps, random)
    base = np.flatnonzero(learnt.arms == BASE)
    pace = _mean_seconds_of_arm(learnt, POLICY) / max(_mean_seconds_of_arm(learnt, UNIFORM), 1e-9)
    try:
        return np.array(
            [
                [
                    _score_resample(
                        learnt, reserve, again, np.concatenate([base, _resample_arm(learnt, arm, n, random)])
                    )
                    for arm, n in ((POLICY, size), (UNIFORM, size), (UNIFORM, max(round(size * pace), 1)))
                ]
                for size in sizes.tolist()
            ]
        )
    except TooFewLabels:
        return None


def _resample_arm(learnt: LabeledTraining, arm: int, n: int, random: np.random.Generator) -> Ints:
    return np.asarray(random.choice(np.flatnonzero(learnt.arms == arm), size=n), dtype=np.int64)


def _mean_seconds_of_arm(learnt: LabeledTraining, arm: int) -> float:
    return float(learnt.seconds[learnt.arms == arm].mean())


def _score_resample(learnt: LabeledTraining, reserve: HeldOutSteps, again: Ints, chosen: Ints) -> float:
    p_wrong = learnt.train(chosen).p_wrong(reserve.seen)
    return concordance.length_matched_auc(reserve.steps.put(p_wrong).take(again)).value or 0.5


def _resample_problems(steps: LabeledSteps, random: np.random.Generator) -> Ints:
    """Rows of as many problems as there are, drawn with replacement."""
    order = np.argsort(steps.problems, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(steps.problems[order])) + 1)
    return np.concatenate([groups[n] for n in random.integers(0, len(groups), len(groups))])


def _summarize(found: Floats, sizes: Ints, learnt: LabeledTraining, batch: int) -> dict[str, Any]:
    """`found` is (replicates, sizes, policy | uniform | uniform in the same time)."""
    mean = found.mean(axis=0)
    return {
        "points": [
            {"n": int(size), "policy": float(row[0]), "uniform": float(row[1])}
            for size, row in zip(sizes, mean, strict=True)
        ],
        "labels": _summarize_gain((found[:, :, 0] - found[:, :, 1]).mean(axis=1)),
        "hours": _summarize_gain((found[:, :, 0] - found[:, :, 2]).mean(axis=1)),
        "seconds": {"policy": _mean_seconds_of_arm(learnt, POLICY), "uniform": _mean_seconds_of_arm(learnt, UNIFORM)},
        "replicates": len(found),
        "hint": _hint(found[:, :, 0], sizes, int((learnt.arms == BASE).sum()), batch),
    }


def _summarize_gain(values: Floats) -> dict[str, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return {"gain": float(values.mean()), "low": float(low), "high": float(high)}


def _hint(policy: Floats, sizes: Ints, base: int, batch: int) -> dict[str, Any]:
    """What the next batch should add, from a line through the curve over log n."""
    if len(sizes) < 2:
        return {}
    x = np.log(sizes + base + 1.0)
    slopes = ((policy - policy.mean(axis=1, keepdims=True)) @ (x - x.mean())) / ((x - x.mean()) ** 2).sum()
    more = slopes * np.log1p(batch / (sizes[-1] + base))
    told = _summarize_gain(more)
    return {**told, "batch": batch, "says_stop": told["high"] < _WORTHWHILE}


def has_no_gain(told: Sequence[dict[str, Any]], *, least: int) -> bool:
    """Whether the last so many generations that could be measured all showed the uniform arm unbeaten."""
    measured = [each for each in told if "labels" in each][-least:]
    return len(measured) == least and all(min(each["labels"]["gain"], each["hours"]["gain"]) <= 0 for each in measured)


# Reads what `payoff` measures: labelled traces by arm with their reading time, and the labelled reserve.


_DEFAULT_SECONDS = 60.0
_CHUNK = 2000


def load_labeled_training(manifest: Manifest) -> LabeledTraining:
    labels = labels_.load_trace_labels(manifest)
    labels = labels.keep(~labels.is_reserve)
    texts = labels_.load_texts_of_labels(labels)
    kept, wrong = labels_.mask_labeled_steps(texts, labels.first_errors)
    traces = np.repeat(np.arange(len(texts)), [len(text.steps) for text in texts])[kept]
    seen = builtin.take_steps(builtin.extract_features([text.asked for text in texts]), kept)
    return LabeledTraining(seen, wrong, traces, _load_arms(manifest, labels), _load_seconds(labels))


def load_held_out_steps(manifest: Manifest) -> HeldOutSteps:
    found = held_out_evaluation.load_held_out_set(manifest)
    rateable = np.array([each for text in found.texts for each in text.is_rateable], dtype=np.bool_)
    judged = labels_.build_judged_traces(found.texts, found.labels.first_errors, np.zeros(len(rateable)))
    seen = builtin.take_steps(builtin.extract_features([text.asked for text in found.texts]), rateable)
    return HeldOutSteps(builtin.take_steps(seen, judged.is_labelled), judged.labelled())


def _load_arms(manifest: Manifest, labels: TraceLabels) -> Ints:
    """By the latest draw of each trace before the manifest; what was never drawn was read before the first batch."""
    arms: dict[int, int] = {}
    for start in range(0, len(labels.traces), _CHUNK):
        rows = TraceDraw.objects.filter(trace__in=labels.traces[start : start + _CHUNK], drawn_at__lte=manifest.made_at)
        for trace, arm in rows.order_by("pk").values_list("trace_id", "arm"):
            arms[trace] = POLICY if arm == "policy" else UNIFORM
    return np.array([arms.get(trace, BASE) for trace in labels.traces], dtype=np.int64)


def _load_seconds(labels: TraceLabels) -> Floats:
    """Time spent on each trace by all of its raters, as far as it was measured."""
    spent: dict[int, float] = {}
    for start in range(0, len(labels.traces), _CHUNK):
        rows = Submission.objects.filter(assignment__trace__in=labels.traces[start : start + _CHUNK], revision=1)
        for trace, ms in rows.values_list("assignment__trace_id").annotate(ms=Sum("total_ms")):
            spent[trace] = (ms or 0) / 1000
    return np.array([spent.get(trace) or _DEFAULT_SECONDS for trace in labels.traces], dtype=np.float64)
