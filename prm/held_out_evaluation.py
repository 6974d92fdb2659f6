"""Judges PRMs on the reserve, and says whether one may take over. Reads alone: verbs keep what is said here."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeling.models import Manifest
from prm import hazards, registry, score_encoding
from prm import trace_labels as labels_
from prm.backends import base, builtin
from prm.backends.builtin import TooFewLabels
from prm.evaluation import audits as evaluation_audits
from prm.evaluation import best_of_n, concordance, gate, report
from prm.evaluation.audits import TraceOutcomes, estimate_to_json
from prm.evaluation.report import JudgedTraces
from prm.models import PRM, Score
from prm.models.prm import BackendKind
from prm.selection import platt
from prm.selection.platt import Calibration
from prm.trace_labels import TraceLabels
from prm.trace_texts import TraceText
from stats.arrays import Bools, Floats, Ints
from stats.estimates import Interval, Reason

BATCH, _CHUNK = 64, 2000
_CANDIDATES, _LEAST_PROBLEMS = (2, 4, 8, 16), 5


@dataclass(frozen=True)
class HeldOutSet:
    """The labelled part of it, read once for all PRMs that are judged."""

    texts: list[TraceText]
    labels: TraceLabels

    def keep(self, is_kept: Bools) -> "HeldOutSet":
        texts = [text for text, kept in zip(self.texts, is_kept, strict=True) if kept]
        return HeldOutSet(texts, self.labels.keep(is_kept))


@dataclass(frozen=True)
class PRMEvaluation:
    """What was found of one PRM."""

    judged: JudgedTraces
    evaluation: dict[str, Any]
    audits: dict[str, Any]
    calibration: dict[str, Any]
    threshold: float | None


def load_held_out_set(manifest: Manifest) -> HeldOutSet:
    labels = labels_.load_trace_labels(manifest)
    kept = labels.keep(labels.is_reserve)
    return HeldOutSet(labels_.load_texts_of_labels(kept), kept)


def limit_to_scored_by(reserve: HeldOutSet, *prms: PRM | None) -> HeldOutSet:
    """What all of these PRMs can be judged on: one whose scores are pushed says nothing of what was not pushed."""
    for prm in prms:
        if prm is not None and prm.backend == BackendKind.PUSHED:
            there = _load_pushed_scores(prm, reserve.texts)
            reserve = reserve.keep(np.array([text.trace in there for text in reserve.texts], dtype=np.bool_))
    return reserve


def _load_pushed_scores(prm: PRM, texts: Sequence[TraceText]) -> dict[int, Floats]:
    """The scores of each trace; context stays NaN."""
    found: dict[int, Floats] = {}
    for start in range(0, len(texts), _CHUNK):
        ids = [text.trace for text in texts[start : start + _CHUNK]]
        for trace, kept in Score.objects.filter(prm=prm, trace__in=ids).values_list("trace_id", "numbers"):
            found[trace] = score_encoding.decode_scores([bytes(kept)])[0][:, 0]
    return found


def score_texts(prm: PRM, texts: Sequence[TraceText]) -> tuple[Floats, Ints]:
    """One number of every step, end to end, NaN for context; and how many each trace has."""
    lengths = np.array([len(text.steps) for text in texts], dtype=np.int64)
    if prm.backend == BackendKind.PUSHED:
        there = _load_pushed_scores(prm, texts)
        return np.concatenate([np.zeros(0), *(there[text.trace] for text in texts)]), lengths
    backend, parts = registry.load_backend(prm), []
    for start in range(0, len(texts), BATCH):
        some = [text.asked for text in texts[start : start + BATCH]]
        parts += base.validate_scores(backend.score(some), some, prm.semantics)
    is_rateable = np.array([each for text in texts for each in text.is_rateable], dtype=np.bool_)
    return np.where(is_rateable, np.concatenate(parts) if parts else np.zeros(0), np.nan), lengths


def evaluate_prm(prm: PRM, reserve: HeldOutSet, *, contamination: dict[str, Any] | None = None) -> PRMEvaluation:
    """`contamination` is what `contaminating.look` told; without it that audit is left open."""
    said, lengths = score_texts(prm, reserve.texts)
    first_value = hazards.estimate_first_value(prm, said, lengths)
    p_wrong = hazards.raw_hazards(prm, said, lengths, first_value=first_value)
    found = labels_.build_judged_traces(reserve.texts, reserve.labels.first_errors, p_wrong)
    steps = found.labelled()
    line = platt.fit_calibration(hazards=steps.p_wrong, is_wrong=steps.is_wrong, n_traces=len(found.lengths))
    has_both = bool(steps.is_wrong.any() and not steps.is_wrong.all())
    estimates = report.report_across_folds(found) if len(found.lengths) else {}
    return PRMEvaluation(
        judged=found,
        evaluation={
            "figures": {name: estimate_to_json(each) for name, each in estimates.items()},
            "counts": report.count_judged(found) if len(found.lengths) else {"traces": 0},
            "domains": _report_by_domain(found, reserve.texts),
            "best_of_n": _report_best_of_n(found, reserve.texts),
        },
        audits=_run_audits(found, reserve.texts, contamination or {}),
        calibration=_calibration_to_json(line, first_value),
        threshold=report.find_threshold(found) if has_both else None,
    )


def _calibration_to_json(line: Calibration, first_value: float) -> dict[str, Any]:
    told = {"intercept": line.intercept, "slope": line.slope, "n": line.n_traces, "is_fitted": line.is_fitted}
    return {**told, "first_value": first_value}


def compare_with_current(
    candidate: PRMEvaluation, current: PRMEvaluation | None, *, is_current: bool
) -> gate.GateDecision:
    """The gate, on the very same labelled steps."""
    steps = candidate.judged.labelled()
    difference: Interval | Reason | None = None
    if current is not None:
        difference = concordance.length_matched_difference(steps, current.judged.labelled().p_wrong)
    return gate.decide_gate(
        candidate=concordance.length_matched_auc(steps),
        difference=difference,
        alarms=candidate.audits.get("alarms", []),
        said=candidate.audits.get("said", []),
        is_current=is_current,
    )


def _report_by_domain(found: JudgedTraces, texts: Sequence[TraceText]) -> dict[str, Any]:
    told = {}
    for domain in sorted({text.domain for text in texts}):
        kept = found.keep(np.array([text.domain == domain for text in texts], dtype=np.bool_))
        told[domain or "-"] = {
            name: estimate_to_json(each) for name, each in report.report_on_steps(kept.labelled()).items()
        }
    return told


def _report_best_of_n(found: JudgedTraces, texts: Sequence[TraceText]) -> list[dict[str, float]]:
    """Does it pay to take the candidate that is likeliest right throughout? Where problems have several with a known
    outcome."""
    is_known = np.array([text.is_right is not None for text in texts], dtype=np.bool_)
    known = found.keep(is_known)
    if not len(known.lengths):
        return []
    starts = np.cumsum(known.lengths) - known.lengths
    passed = np.log1p(-np.minimum(known.p_wrong, 1 - 1e-9))
    points = best_of_n.best_of_n_curve(
        scores=np.add.reduceat(passed, starts),
        is_right=np.array([bool(text.is_right) for text in texts if text.is_right is not None]),
        problems=known.problems,
        sizes=_CANDIDATES,
    )
    return [vars(point) for point in points if point.problems >= _LEAST_PROBLEMS]


def _run_audits(found: JudgedTraces, texts: Sequence[TraceText], contamination: dict[str, Any]) -> dict[str, Any]:
    domains = sorted({text.domain for text in texts})
    outcomes = TraceOutcomes(
        domains=[domain or "-" for domain in domains],
        domain=[domains.index(text.domain) for text in texts],
        is_answer_right=[text.is_right for text in texts],
    )
    return evaluation_audits.build_audit_report(found, outcomes, contamination=contamination)


# Does what the builtin PRM learns in some domains hold in another? Each domain of the reserve is judged by a scorer


MAX_TRANSFER_DOMAINS = 8


def evaluate_domain_transfer(
    prm: PRM, labels: TraceLabels, reserve: HeldOutSet
) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each domain the length-matched figure of a scorer that has not seen it; none where there is one domain."""
    domains = [name for name, _ in Counter(text.domain for text in reserve.texts).most_common(MAX_TRANSFER_DOMAINS)]
    if prm.backend != BackendKind.BUILTIN or prm.trained is None or len(domains) < 2:
        return
    trained = np.isin(np.array(labels.traces), np.array(score_encoding.decode_ids(bytes(prm.trained))))
    learnt = labels.keep(trained)
    texts = labels_.load_texts_of_labels(learnt)
    kept, wrong = labels_.mask_labeled_steps(texts, learnt.first_errors)
    seen = builtin.take_steps(builtin.extract_features([text.asked for text in texts]), kept)
    of_step = np.repeat([text.domain for text in texts], [len(text.steps) for text in texts])[kept]
    for domain in domains:
        others = of_step != domain
        try:
            scorer = builtin.train_scorer(builtin.take_steps(seen, others), wrong[others])
        except TooFewLabels:
            continue
        yield domain or "-", _evaluate_on_domain(scorer, domain, reserve)


def _evaluate_on_domain(scorer: builtin.BuiltinScorer, domain: str, reserve: HeldOutSet) -> dict[str, Any]:
    is_in = np.array([text.domain == domain for text in reserve.texts], dtype=np.bool_)
    texts = [text for text in reserve.texts if text.domain == domain]
    p_wrong = scorer.p_wrong(builtin.extract_features([text.asked for text in texts]))
    judged = labels_.build_judged_traces(texts, reserve.labels.first_errors[is_in], p_wrong)
    return estimate_to_json(concordance.length_matched_auc(judged.labelled()))
