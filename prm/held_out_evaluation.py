"""Evaluate PRMs on the labeled held-out set, and decide whether a candidate may replace the current one.

Writes nothing: `training_job` records the results.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeling.models import Manifest
from prm import hazards, registry, score_encoding, trace_labels, trace_texts
from prm.backends import base, builtin
from prm.backends.builtin import BuiltinScorer, TooFewLabels
from prm.evaluation import audits, best_of_n, concordance, gate, processbench, report
from prm.evaluation.audits import TraceOutcomes, estimate_to_json
from prm.evaluation.gate import GateDecision
from prm.evaluation.labeled_steps import JudgedTraces
from prm.models import PRM, Score
from prm.models.prm import BackendKind
from prm.selection import platt
from prm.trace_labels import TraceLabels
from prm.trace_texts import TraceText
from stats.arrays import Bools, Floats, Ints
from stats.estimates import Interval, Reason

MAX_TRANSFER_DOMAINS = 8
_TRACES_PER_CALL, _TRACES_PER_QUERY = 64, 2000
_BEST_OF_N_SIZES, _MIN_PROBLEMS = (2, 4, 8, 16), 5


@dataclass(frozen=True)
class HeldOutSet:
    """The labeled held-out traces, loaded once for all PRMs."""

    texts: list[TraceText]
    labels: TraceLabels

    def keep(self, is_kept: Bools) -> "HeldOutSet":
        texts = [text for text, kept in zip(self.texts, is_kept, strict=True) if kept]
        return HeldOutSet(texts, self.labels.keep(is_kept))


@dataclass(frozen=True)
class PRMEvaluation:
    """The results for one PRM; all but `judged` are stored with it."""

    judged: JudgedTraces
    evaluation: dict[str, Any]
    audits: dict[str, Any]
    calibration: dict[str, Any]
    threshold: float | None


def load_held_out_set(manifest: Manifest) -> HeldOutSet:
    labels = trace_labels.load_trace_labels(manifest)
    held_out = labels.keep(labels.is_reserve)
    return HeldOutSet(trace_texts.load_trace_texts(held_out.traces), held_out)


def limit_to_scored_by(held_out: HeldOutSet, *prms: PRM | None) -> HeldOutSet:
    """Drop the traces that one of the PRMs cannot score, because its scores are pushed and these are missing."""
    for prm in prms:
        if prm is not None and prm.backend == BackendKind.PUSHED:
            pushed = _load_pushed_scores(prm, held_out.texts)
            held_out = held_out.keep(np.array([text.trace in pushed for text in held_out.texts], dtype=np.bool_))
    return held_out


def _load_pushed_scores(prm: PRM, texts: Sequence[TraceText]) -> dict[int, Floats]:
    """Return the scores of each trace, NaN for context."""
    scores: dict[int, Floats] = {}
    for start in range(0, len(texts), _TRACES_PER_QUERY):
        ids = [text.trace for text in texts[start : start + _TRACES_PER_QUERY]]
        for trace, numbers in Score.objects.filter(prm=prm, trace__in=ids).values_list("trace_id", "numbers"):
            scores[trace] = score_encoding.decode_scores([bytes(numbers)])[0][:, 0]
    return scores


def score_texts(prm: PRM, texts: Sequence[TraceText]) -> tuple[Floats, Ints]:
    """Return the scores of all steps end to end (NaN for context), and the length of each trace."""
    lengths = np.array([len(text.steps) for text in texts], dtype=np.int64)
    if prm.backend == BackendKind.PUSHED:
        pushed = _load_pushed_scores(prm, texts)
        return np.concatenate([np.zeros(0), *(pushed[text.trace] for text in texts)]), lengths
    backend, parts = registry.load_backend(prm), [np.zeros(0)]
    for start in range(0, len(texts), _TRACES_PER_CALL):
        inputs = [text.scorer_input for text in texts[start : start + _TRACES_PER_CALL]]
        parts += base.validate_scores(backend.score(inputs), inputs, prm.semantics)
    is_rateable = np.array([each for text in texts for each in text.is_rateable], dtype=np.bool_)
    return np.where(is_rateable, np.concatenate(parts), np.nan), lengths


def evaluate_prm(prm: PRM, held_out: HeldOutSet, *, contamination: dict[str, Any] | None = None) -> PRMEvaluation:
    """Evaluate a PRM; `contamination` is the result of `contamination_check.audit_training_set`."""
    scores, lengths = score_texts(prm, held_out.texts)
    first_value = hazards.estimate_first_value(prm, scores, lengths)
    p_wrong = hazards.raw_hazards(prm, scores, lengths, first_value=first_value)
    judged = trace_labels.build_judged_traces(held_out.texts, held_out.labels.first_errors, p_wrong)
    steps, has_traces = judged.labeled_steps(), len(judged.lengths) > 0
    line = platt.fit_calibration(hazards=steps.p_wrong, is_wrong=steps.is_wrong, n_traces=len(judged.lengths))
    has_both_labels = bool(steps.is_wrong.any() and not steps.is_wrong.all())
    estimates = report.report_across_folds(judged) if has_traces else {}
    return PRMEvaluation(
        judged=judged,
        evaluation={
            "figures": {name: estimate_to_json(estimate) for name, estimate in estimates.items()},
            "counts": report.count_judged(judged) if has_traces else {"traces": 0},
            "domains": _report_by_domain(judged, held_out.texts),
            "best_of_n": _report_best_of_n(judged, held_out.texts),
        },
        audits=audits.build_audit_report(judged, _trace_outcomes(held_out.texts), contamination=contamination or {}),
        calibration={
            "intercept": line.intercept,
            "slope": line.slope,
            "n": line.n_traces,
            "is_fitted": line.is_fitted,
            "first_value": first_value,
        },
        threshold=processbench.find_best_threshold(judged) if has_both_labels else None,
    )


def compare_with_current(candidate: PRMEvaluation, current: PRMEvaluation | None, *, is_current: bool) -> GateDecision:
    """Decide the gate from both PRMs' scores of the same labeled steps."""
    steps = candidate.judged.labeled_steps()
    difference: Interval | Reason | None = None
    if current is not None:
        difference = concordance.length_matched_difference(steps, current.judged.labeled_steps().p_wrong)
    return gate.decide_gate(
        candidate=concordance.length_matched_auc(steps),
        difference=difference,
        alarms=candidate.audits["alarms"],
        advisory=candidate.audits["advisory"],
        is_current=is_current,
    )


def _report_by_domain(judged: JudgedTraces, texts: Sequence[TraceText]) -> dict[str, Any]:
    reports = {}
    for domain in sorted({text.domain for text in texts}):
        part = judged.keep(np.array([text.domain == domain for text in texts], dtype=np.bool_))
        estimates = report.report_on_steps(part.labeled_steps())
        reports[domain or "-"] = {name: estimate_to_json(estimate) for name, estimate in estimates.items()}
    return reports


def _report_best_of_n(judged: JudgedTraces, texts: Sequence[TraceText]) -> list[dict[str, Any]]:
    """Rerank the traces with a known outcome by P(all steps right)."""
    is_known = np.array([text.is_right is not None for text in texts], dtype=np.bool_)
    known = judged.keep(is_known)
    if not len(known.lengths):
        return []
    log_right = np.log1p(-np.minimum(known.p_wrong, 1 - 1e-9))
    points = best_of_n.best_of_n_curve(
        scores=np.add.reduceat(log_right, np.cumsum(known.lengths) - known.lengths),
        is_right=np.array([bool(text.is_right) for text in texts if text.is_right is not None]),
        problems=known.problems,
        sizes=_BEST_OF_N_SIZES,
    )
    return [vars(point) for point in points if point.problems >= _MIN_PROBLEMS]


def _trace_outcomes(texts: Sequence[TraceText]) -> TraceOutcomes:
    domains = sorted({text.domain for text in texts})
    return TraceOutcomes(
        domains=[domain or "-" for domain in domains],
        domain=[domains.index(text.domain) for text in texts],
        is_answer_right=[text.is_right for text in texts],
    )


# --- transfer between domains ---------------------------------------------------------------------------------------


def evaluate_domain_transfer(
    prm: PRM, labels: TraceLabels, held_out: HeldOutSet
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each domain with the length-matched AUC of a builtin scorer that was trained without that domain."""
    domains = [name for name, _ in Counter(text.domain for text in held_out.texts).most_common(MAX_TRANSFER_DOMAINS)]
    if prm.backend != BackendKind.BUILTIN or prm.trained is None or len(domains) < 2:
        return
    trained = labels.keep(np.isin(labels.traces, score_encoding.decode_ids(bytes(prm.trained))))
    texts = trace_texts.load_trace_texts(trained.traces)
    is_labeled, is_wrong = trace_labels.mask_labeled_steps(texts, trained.first_errors)
    steps = builtin.take_steps(builtin.extract_features([text.scorer_input for text in texts]), is_labeled)
    step_domains = np.repeat([text.domain for text in texts], [len(text.steps) for text in texts])[is_labeled]
    for domain in domains:
        others = step_domains != domain
        try:
            scorer = builtin.train_scorer(builtin.take_steps(steps, others), is_wrong[others])
        except TooFewLabels:
            continue
        yield domain or "-", _evaluate_on_domain(scorer, domain, held_out)


def _evaluate_on_domain(scorer: BuiltinScorer, domain: str, held_out: HeldOutSet) -> dict[str, Any]:
    part = held_out.keep(np.array([text.domain == domain for text in held_out.texts], dtype=np.bool_))
    p_wrong = scorer.p_wrong(builtin.extract_features([text.scorer_input for text in part.texts]))
    judged = trace_labels.build_judged_traces(part.texts, part.labels.first_errors, p_wrong)
    return estimate_to_json(concordance.length_matched_auc(judged.labeled_steps()))
