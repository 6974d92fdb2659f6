"""Is active selection helping? PRMs trained on as many policy draws as uniform draws, evaluated on the held-out set.

    labels   equally many traces of both sampling sources
    hours    as many uniform draws as can be labeled in the time that the policy draws took

The gain is the length-matched risk-set AUC, policy minus uniform, averaged over three sizes. Traces labeled before the
first batch belong to both sides. Each replicate resamples the traces of each source and the problems of the held-out
set; the interval covers 95 % of the replicates.

The labels of one batch and its probabilities also estimate the share of traces with an error in the whole pool.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Sum

from jobs import paging
from labeling.models import Manifest, Submission, TraceDraw
from labeling.models.queue import SamplingSource
from prm import held_out_evaluation, labeled_traces
from prm.backends import builtin
from prm.backends.builtin import BuiltinScorer, StepFeatures, TooFewLabels
from prm.evaluation import step_figures
from prm.evaluation.labeled_steps import LabeledSteps
from prm.labeled_traces import TraceLabels
from prm.selection import draws
from stats.arrays import Bools, Floats, Ints

MIN_TRACES, MIN_ERRORS, MIN_DRAWS = 20, 10, 20
REPLICATES = 20
SIZES = 3
BASE, UNIFORM, POLICY = 0, 1, 2  # BASE: labeled before the first batch
_MIN_WORTHWHILE_GAIN = 0.005  # of a whole batch
_DEFAULT_SECONDS = 60.0


@dataclass(frozen=True)
class LabeledTraining:
    """Labeled steps outside the held-out set: features, label, trace; per trace the source and the seconds spent."""

    features: StepFeatures
    is_wrong: Bools
    traces: Ints
    sources: Ints
    seconds: Floats

    def train(self, chosen: Ints) -> BuiltinScorer:
        """Train on the chosen traces; one may be chosen several times."""
        order = np.argsort(self.traces, kind="stable")
        starts = np.searchsorted(self.traces[order], chosen)
        ends = np.searchsorted(self.traces[order], chosen, side="right")
        parts = [order[start:end] for start, end in zip(starts, ends, strict=True)]
        rows = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        return builtin.train_scorer(builtin.take_steps(self.features, rows), self.is_wrong[rows])

    def traces_of(self, source: int) -> Ints:
        return np.flatnonzero(self.sources == source)

    def mean_seconds(self, source: int) -> float:
        return float(self.seconds[self.traces_of(source)].mean())


@dataclass(frozen=True)
class HeldOutSteps:
    features: StepFeatures
    steps: LabeledSteps


def find_shortage(training: LabeledTraining, held_out: HeldOutSteps) -> dict[str, str]:
    """Return why the gain cannot be measured yet, as it is stored; empty if it can."""
    n_traces = min(len(training.traces_of(source)) for source in (UNIFORM, POLICY))
    if n_traces < MIN_TRACES:
        reason = f"one sampling source has {n_traces} labeled traces, {MIN_TRACES} are needed"
        return {"shortage": "few_traces", "reason": reason}
    n_errors = int(held_out.steps.is_wrong.sum())
    if n_errors < MIN_ERRORS:
        reason = f"the labeled held-out set has {n_errors} errors, {MIN_ERRORS} are needed"
        return {"shortage": "few_errors", "reason": reason}
    return {}


# --- measure --------------------------------------------------------------------------------------------------------


def measure_payoff(
    training: LabeledTraining, held_out: HeldOutSteps, *, batch: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield the result after each replicate; the last one is complete."""
    random = np.random.default_rng(seed)
    largest = min(len(training.traces_of(source)) for source in (UNIFORM, POLICY))
    sizes = np.unique(np.linspace(0, largest, SIZES + 1).round().astype(int)[1:])
    rows: list[Floats] = []
    for _ in range(REPLICATES):
        row = _replicate(training, held_out, sizes, random)
        if row is not None:
            rows.append(row)
        yield _summarize(np.array(rows), sizes, training, batch) if len(rows) > 1 else {}


def _replicate(
    training: LabeledTraining, held_out: HeldOutSteps, sizes: Ints, random: np.random.Generator
) -> Floats | None:
    """Return AUCs as (sizes, policy | uniform | uniform in equal time); None if a sample has too few labels."""
    rows = _resample_problems(held_out.steps, random)
    base = training.traces_of(BASE)
    pace = training.mean_seconds(POLICY) / max(training.mean_seconds(UNIFORM), 1e-9)

    def compute_auc(source: int, n: int) -> float:
        sample = random.choice(training.traces_of(source), size=n)
        p_wrong = training.train(np.concatenate([base, sample])).p_wrong(held_out.features)
        return step_figures.length_matched_auc(held_out.steps.with_scores(p_wrong).take(rows)).value or 0.5

    try:
        return np.array(
            [
                [compute_auc(POLICY, n), compute_auc(UNIFORM, n), compute_auc(UNIFORM, max(round(n * pace), 1))]
                for n in sizes.tolist()
            ]
        )
    except TooFewLabels:
        return None


def _resample_problems(steps: LabeledSteps, random: np.random.Generator) -> Ints:
    """Return the rows of as many problems as there are, drawn with replacement."""
    order = np.argsort(steps.problems, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(steps.problems[order])) + 1)
    return np.concatenate([groups[n] for n in random.integers(0, len(groups), len(groups))])


def _summarize(aucs: Floats, sizes: Ints, training: LabeledTraining, batch: int) -> dict[str, Any]:
    """Summarize (replicates, sizes, policy | uniform | uniform in equal time)."""
    means = aucs.mean(axis=0)
    return {
        "points": [
            {"n": int(size), "policy": float(row[0]), "uniform": float(row[1])}
            for size, row in zip(sizes, means, strict=True)
        ],
        "labels": _summarize_gain((aucs[:, :, 0] - aucs[:, :, 1]).mean(axis=1)),
        "hours": _summarize_gain((aucs[:, :, 0] - aucs[:, :, 2]).mean(axis=1)),
        "seconds": {"policy": training.mean_seconds(POLICY), "uniform": training.mean_seconds(UNIFORM)},
        "replicates": len(aucs),
        "hint": _predict_next_gain(aucs[:, :, 0], sizes, len(training.traces_of(BASE)), batch),
    }


def _summarize_gain(values: Floats) -> dict[str, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return {"gain": float(values.mean()), "low": float(low), "high": float(high)}


def _predict_next_gain(policy: Floats, sizes: Ints, base: int, batch: int) -> dict[str, Any]:
    """Predict the gain of the next batch by a line through the learning curve over log n.

    An AUC is between 0 and 1. A prediction whose interval leaves that range says nothing, and is withheld.
    """
    if len(sizes) < 2:
        return {}
    x = np.log(sizes + base + 1.0)
    slopes = ((policy - policy.mean(axis=1, keepdims=True)) @ (x - x.mean())) / ((x - x.mean()) ** 2).sum()
    gain = _summarize_gain(slopes * np.log1p(batch / (sizes[-1] + base)))
    reached = float(policy[:, -1].mean())
    if reached + gain["low"] < 0 or reached + gain["high"] > 1:
        return {"batch": batch, "is_withheld": True}
    return {**gain, "batch": batch, "says_stop": gain["high"] < _MIN_WORTHWHILE_GAIN}


def has_no_gain(payoffs: Sequence[dict[str, Any]], *, least: int) -> bool:
    """Return whether each of the last `least` measured generations had no gain by labels, or none by hours."""
    measured = [each for each in payoffs if "labels" in each][-least:]
    return len(measured) == least and all(min(each["labels"]["gain"], each["hours"]["gain"]) <= 0 for each in measured)


# --- estimate the pool ------------------------------------------------------------------------------------------------


def estimate_from_batch(*, project_id: int, batch: int, manifest: Manifest) -> dict[str, Any]:
    """Estimate from the draws before the first unlabeled one: q is valid only for an unbroken sequence.

    The loss of a trace is the share of its raters who reported an error.
    """
    shares = labeled_traces.load_error_shares(manifest)
    columns = ("trace_id", "q", "pool_size", "trace__problem__domain")
    drawn = list(TraceDraw.objects.filter(project=project_id, batch=batch).order_by("rank").values_list(*columns))
    n_labeled = next((n for n, draw in enumerate(drawn) if draw[0] not in shares), len(drawn))
    counts: dict[str, Any] = {"batch": batch, "n_drawn": len(drawn), "n": n_labeled}
    if n_labeled < MIN_DRAWS:
        return counts
    traces, probabilities, pool_sizes, domains = zip(*drawn[:n_labeled], strict=True)
    losses, q, domain_names = np.array([shares[trace] for trace in traces]), np.array(probabilities), np.array(domains)
    plain, normalized = draws.estimate_pool_mean(losses=losses, q=q, pool_size=pool_sizes[0])
    by_domain = {
        domain or "-": draws.estimate_slice_mean(
            losses=losses, is_in_slice=(domain_names == domain).astype(np.float64), q=q, pool_size=pool_sizes[0]
        )
        for domain in sorted(set(domains))
    }
    return {**counts, "plain": plain, "self_normalised": normalized, "domains": by_domain}


# --- load -----------------------------------------------------------------------------------------------------------


def load_labeled_training(manifest: Manifest) -> LabeledTraining:
    labels = labeled_traces.load_trace_labels(manifest)
    labels = labels.keep(~labels.is_reserve)
    texts = labeled_traces.load_trace_texts(labels.traces)
    is_labeled, is_wrong = labeled_traces.mask_labeled_steps(texts, labels.first_errors)
    traces = np.repeat(np.arange(len(texts)), [len(text.steps) for text in texts])[is_labeled]
    features = builtin.take_steps(builtin.extract_features(texts), is_labeled)
    return LabeledTraining(features, is_wrong, traces, _load_sources(manifest, labels), _load_seconds(labels))


def load_held_out_steps(manifest: Manifest) -> HeldOutSteps:
    held_out = held_out_evaluation.load_held_out_set(manifest)
    is_rateable = np.array([each for text in held_out.texts for each in text.is_rateable], dtype=np.bool_)
    judged = labeled_traces.build_judged_traces(
        held_out.texts, held_out.labels.first_errors, np.zeros(len(is_rateable))
    )
    features = builtin.extract_features(held_out.texts)
    labeled = builtin.take_steps(builtin.take_steps(features, is_rateable), judged.is_labeled)
    return HeldOutSteps(labeled, judged.labeled_steps())


def _load_sources(manifest: Manifest, labels: TraceLabels) -> Ints:
    """Return the source of each trace's latest draw before the manifest; BASE without a draw."""
    sources: dict[int, int] = {}
    for part in paging.split(labels.traces):
        drawn = TraceDraw.objects.filter(trace__in=part, drawn_at__lte=manifest.made_at).order_by("pk")
        for trace, source in drawn.values_list("trace_id", "arm"):
            sources[trace] = POLICY if source == SamplingSource.POLICY else UNIFORM
    return np.array([sources.get(trace, BASE) for trace in labels.traces], dtype=np.int64)


def _load_seconds(labels: TraceLabels) -> Floats:
    """Return the active time of all raters of each trace, or a default where it was not measured."""
    seconds: dict[int, float] = {}
    for part in paging.split(labels.traces):
        submissions = Submission.objects.filter(assignment__trace__in=part, revision=1)
        for trace, ms in submissions.values_list("assignment__trace_id").annotate(ms=Sum("total_ms")):
            seconds[trace] = (ms or 0) / 1000
    return np.array([seconds.get(trace) or _DEFAULT_SECONDS for trace in labels.traces], dtype=np.float64)
