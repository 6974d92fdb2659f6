"""The first job of a generation: snapshot, train, evaluate, gate. It resumes at the stage of the generation's row."""

import datetime as dt
import hashlib
from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

import numpy as np

from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.datasets import manifest as manifests
from labeling.datasets.selection import ManifestFilters
from labeling.models.assignment import AssignmentPurpose
from prm import contamination_check, generations, held_out_evaluation, registry, scores, trace_labels, trace_texts
from prm.backends import builtin
from prm.backends.builtin import StepFeatures, TooFewLabels
from prm.evaluation import audits
from prm.evaluation.gate import GateDecision
from prm.held_out_evaluation import PRMEvaluation
from prm.models import PRM, Generation
from prm.models.generation import Stage
from prm.models.prm import BackendKind
from prm.registry import PRMIdentity
from prm.trace_labels import TraceLabels
from stats.arrays import Bools

# The job reports hundredths: the snapshot ends at 5, training at 60, the evaluation at 100.
TOTAL = 100
_SNAPSHOT_END, _READING_END, _TRAINING_END = 5, 55, 60
_TRACES_PER_REPORT = 500


def run_training_job(job: Job) -> Iterator[JobProgress | Chunk]:
    rows = Generation.objects.select_related("project", "candidate", "manifest", "started_by")
    generation = rows.get(pk=job.arguments["generation"])
    if generation.stage == Stage.SNAPSHOT:
        yield partial(_freeze_snapshot, generation)
    if generation.stage == Stage.TRAIN:
        yield from _train_candidate(generation)
    if generation.stage == Stage.EVALUATE:
        yield from _evaluate_candidate(generation)


def _freeze_snapshot(generation: Generation, now: dt.datetime) -> JobProgress:
    manifest = manifests.freeze_manifest(
        project=generation.project,
        filters=ManifestFilters(purposes=[AssignmentPurpose.WORK]),
        purpose="generation",
        now=now,
        by=generation.started_by,
    )
    generations.record_snapshot(generation=generation, manifest=manifest, now=now)
    return JobProgress(_SNAPSHOT_END, TOTAL)


def _train_candidate(generation: Generation) -> Iterator[JobProgress | Chunk]:
    """Train a builtin PRM on the snapshot, without the held-out set and without problems similar to evaluated ones."""
    assert generation.manifest is not None  # recorded with the stage
    labels = contamination_check.exclude_judging_problems(
        generation.project, trace_labels.load_trace_labels(generation.manifest)
    )
    parts: list[StepFeatures] = []
    is_wrong: list[Bools] = []
    for part, n_done in _split_labels(labels):
        texts = trace_texts.load_trace_texts(part.traces)
        is_labeled, wrong = trace_labels.mask_labeled_steps(texts, part.first_errors)
        parts.append(builtin.take_steps(builtin.extract_features([text.scorer_input for text in texts]), is_labeled))
        is_wrong.append(wrong)
        done = _SNAPSHOT_END + (_READING_END - _SNAPSHOT_END) * n_done // len(labels.traces)
        yield JobProgress(done, TOTAL)
    try:
        if not parts:
            raise TooFewLabels("the snapshot has no settled trace outside the held-out set")
        scorer = builtin.train_scorer(builtin.concatenate_features(parts), np.concatenate(is_wrong))
    except TooFewLabels as error:
        raise JobFailed(f"No PRM can be trained: {error}. Label more traces, then start again.") from None
    yield partial(_register_candidate, generation, scorer.to_bytes(), labels.traces)


def _split_labels(labels: TraceLabels) -> Iterator[tuple[TraceLabels, int]]:
    """Yield the labels in parts, with the number of traces up to the end of each."""
    numbers = np.arange(len(labels.traces))
    for start in range(0, len(numbers), _TRACES_PER_REPORT):
        end = min(start + _TRACES_PER_REPORT, len(numbers))
        yield labels.keep((numbers >= start) & (numbers < end)), end


def _register_candidate(generation: Generation, weights: bytes, trained: list[int], now: dt.datetime) -> JobProgress:
    digest = hashlib.sha256(weights).hexdigest()
    prm = registry.register_prm(
        project=generation.project,
        identity=PRMIdentity(BackendKind.BUILTIN, builtin.NAME, digest=digest, weights=weights),
        by=generation.started_by,
        now=now,
        manifest=generation.manifest,
        trained=trained,
    )
    generations.record_candidate(generation=generation, prm=prm, n_traces=len(trained), now=now)
    return JobProgress(_TRAINING_END, TOTAL)


def _evaluate_candidate(generation: Generation) -> Iterator[JobProgress | Chunk]:
    candidate, manifest = generation.candidate, generation.manifest
    assert candidate is not None  # recorded with the stage
    assert manifest is not None
    current = registry.current_prm(generation.project_id)
    held_out = held_out_evaluation.limit_to_scored_by(
        held_out_evaluation.load_held_out_set(manifest), candidate, current
    )
    yield JobProgress(70, TOTAL)
    contamination = yield from _audit_contamination(candidate)
    evaluation = held_out_evaluation.evaluate_prm(candidate, held_out, contamination=contamination)
    yield JobProgress(85, TOTAL)
    labels = trace_labels.load_trace_labels(manifest)
    for domain, figure in held_out_evaluation.evaluate_domain_transfer(candidate, labels, held_out):
        evaluation.audits.setdefault("left_out", {})[domain] = figure
        evaluation.audits["domains"]["may_claim_all"] &= audits.holds_in_every_domain({domain: figure})
        yield JobProgress(90, TOTAL)
    is_current = current is not None and current.pk == candidate.pk
    before = held_out_evaluation.evaluate_prm(current, held_out) if current is not None and not is_current else None
    decision = held_out_evaluation.compare_with_current(evaluation, before, is_current=is_current)
    yield partial(_record_gate, generation, candidate, current, evaluation, before, decision)


def _audit_contamination(candidate: PRM) -> Generator[JobProgress, None, dict[str, Any]]:
    """Report progress between parts: hundreds of thousands of evaluated problems take minutes."""
    audit = contamination_check.audit_training_set(candidate)
    while True:
        try:
            next(audit)
        except StopIteration as end:
            return dict(end.value)
        yield JobProgress(70, TOTAL)


def _record_gate(
    generation: Generation,
    candidate: PRM,
    current: PRM | None,
    evaluation: PRMEvaluation,
    before: PRMEvaluation | None,
    decision: GateDecision,
    now: dt.datetime,
) -> JobProgress:
    registry.record_evaluation(
        prm=candidate,
        evaluation=evaluation.evaluation,
        audits=evaluation.audits,
        calibration=evaluation.calibration,
        threshold=evaluation.threshold,
        now=now,
    )
    winner = candidate if decision.has_passed else current
    generations.record_gate(
        generation=generation,
        has_passed=decision.has_passed,
        gate={
            "why": decision.reason.value,
            "alarms": list(decision.alarms),
            "contamination": evaluation.audits["audits"]["contamination"],
            "figures": evaluation.evaluation["figures"],
            "before": before.evaluation["figures"] if before else {},
            "counts": evaluation.evaluation["counts"],
        },
        scored_with=winner,
        now=now,
    )
    if decision.has_passed:
        registry.make_current(prm=candidate, by=generation.started_by, now=now, why=decision.reason)
    can_score = winner is not None and winner.backend != BackendKind.PUSHED
    n_traces = scores.unscored_traces(winner).count() if winner is not None and can_score else 0
    generations.begin_scoring(generation=generation, n_traces=n_traces, now=now)
    return JobProgress(TOTAL, TOTAL)
