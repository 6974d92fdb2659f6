"""Evaluate PRMs on the labeled held-out set, and decide whether a candidate may replace the current one.

Writes nothing: `training_job` records the results.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs import paging
from labeling.models import Manifest
from prm import labeled_traces, registry, scores
from prm.backends import base, builtin
from prm.backends.builtin import BuiltinScorer, TooFewLabels
from prm.evaluation import audits, gate, report, step_figures
from prm.evaluation.audits import TraceOutcomes, estimate_to_json
from prm.evaluation.gate import GateReason, PRMComparison
from prm.evaluation.labeled_steps import JudgedTraces
from prm.labeled_traces import TraceLabels, TraceText
from prm.models import PRM
from prm.models.prm import BackendKind
from prm.selection import hazards
from stats.arrays import Bools, Floats, Ints

MAX_TRANSFER_DOMAINS = 8
_TRACES_PER_CALL = 64
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
    labels = labeled_traces.load_trace_labels(manifest)
    held_out = labels.keep(labels.is_reserve)
    return HeldOutSet(labeled_traces.load_trace_texts(held_out.traces), held_out)


def limit_to_scored_by(held_out: HeldOutSet, *prms: PRM | None) -> HeldOutSet:
    """Drop the traces that one of the PRMs cannot score, because its scores are pushed and these are missing."""
    for prm in prms:
        if prm is not None and prm.backend == BackendKind.PUSHED:
            pushed = scores.load_scores(prm, held_out.labels.traces)
            held_out = held_out.keep(np.isin(held_out.labels.traces, list(pushed)))
    return held_out


def has_scores_for(prm: PRM, held_out: HeldOutSet) -> bool:
    """Return False for a PRM without pushed scores, of any trace or of all held-out ones."""
    if prm.backend != BackendKind.PUSHED:
        return True
    has_held_out = not held_out.texts or bool(limit_to_scored_by(held_out, prm).texts)
    return has_held_out and scores.traces_scored_by(prm).exists()


def score_texts(prm: PRM, texts: Sequence[TraceText]) -> tuple[Floats, Ints]:
    """Return the scores of all steps end to end (NaN for context), and the length of each trace."""
    lengths = np.array([len(text.steps) for text in texts], dtype=np.int64)
    if prm.backend == BackendKind.PUSHED:
        pushed = scores.load_scores(prm, [text.trace for text in texts])
        return np.concatenate([np.zeros(0), *(pushed[text.trace][:, 0] for text in texts)]), lengths
    backend, parts = registry.load_backend(prm), [np.zeros(0)]
    for part in paging.split(texts, _TRACES_PER_CALL):
        parts += base.validate_scores(backend.score(part), part, prm.semantics)
    is_rateable = np.array([each for text in texts for each in text.is_rateable], dtype=np.bool_)
    return np.where(is_rateable, np.concatenate(parts), np.nan), lengths


def evaluate_prm(prm: PRM, held_out: HeldOutSet, *, contamination: dict[str, Any] | None = None) -> PRMEvaluation:
    """Evaluate a PRM; `contamination` is the result of `contamination_check.audit_training_set`."""
    step_scores, lengths = score_texts(prm, held_out.texts)
    first_value = {"first_value": hazards.estimate_first_value(step_scores, lengths, prm.semantics)}
    p_wrong = hazards.raw_hazards(step_scores, lengths, prm.semantics, first_value)
    judged = labeled_traces.build_judged_traces(held_out.texts, held_out.labels.first_errors, p_wrong)
    steps, has_traces = judged.labeled_steps(), len(judged.lengths) > 0
    calibration = hazards.fit_calibration(hazards=steps.p_wrong, is_wrong=steps.is_wrong, n_traces=len(judged.lengths))
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
        calibration=calibration | first_value,
        threshold=report.find_best_threshold(judged) if has_both_labels else None,
    )


def decide_gate(
    candidate: PRMEvaluation, current: PRMEvaluation | None, *, margin: float, is_current: bool, has_scores: bool
) -> tuple[GateReason, PRMComparison | None]:
    """Decide the gate from both PRMs' scores of the same labeled steps. Return the comparison with the reason."""
    steps = candidate.judged.labeled_steps()
    comparison = None
    if current is not None:
        comparison = gate.compare_prms(steps, current.judged.labeled_steps().p_wrong, margin=margin)
    reason = gate.decide_gate(
        candidate=step_figures.length_matched_auc(steps),
        comparison=comparison,
        alarms=candidate.audits["alarms"],
        advisory=candidate.audits["advisory"],
        is_current=is_current,
        has_scores=has_scores,
    )
    return reason, comparison


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
    points = report.best_of_n_curve(
        scores=np.add.reduceat(log_right, np.cumsum(known.lengths) - known.lengths),
        is_right=np.array([bool(text.is_right) for text in texts if text.is_right is not None]),
        problems=known.problems,
        sizes=_BEST_OF_N_SIZES,
    )
    return [point for point in points if point["problems"] >= _MIN_PROBLEMS]


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
    trained = labels.keep(np.isin(labels.traces, prm.trained_ids()))
    texts = labeled_traces.load_trace_texts(trained.traces)
    is_labeled, is_wrong = labeled_traces.mask_labeled_steps(texts, trained.first_errors)
    steps = builtin.take_steps(builtin.extract_features(texts), is_labeled)
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
    p_wrong = scorer.p_wrong(builtin.extract_features(part.texts))
    judged = labeled_traces.build_judged_traces(part.texts, part.labels.first_errors, p_wrong)
    return estimate_to_json(step_figures.length_matched_auc(judged.labeled_steps()))
