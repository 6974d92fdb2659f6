"""The first job of a generation: snapshot, train, evaluate, gate. It resumes at the stage of the generation's row."""

import datetime as dt
import hashlib
from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

import numpy as np

from jobs import paging
from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.datasets import manifest as manifests
from labeling.datasets.selection import ManifestFilters
from labeling.models.assignment import AssignmentPurpose
from prm import canaries, contamination_check, generations, held_out_evaluation, labeled_traces, registry, scores
from prm.backends import builtin
from prm.backends.builtin import StepFeatures, TooFewLabels
from prm.evaluation import audits
from prm.evaluation.gate import GateReason, Verdict
from prm.held_out_evaluation import PRMEvaluation
from prm.models import PRM, Generation
from prm.models.generation import Stage
from prm.models.prm import BackendKind
from prm.registry import PRMIdentity
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
    generations.advance_generation(
        generation=generation,
        stage=Stage.TRAIN if generation.candidate_id is None else Stage.EVALUATE,
        now=now,
        manifest=manifest,
        n_submissions=manifest.n_rows,
    )
    return JobProgress(_SNAPSHOT_END, TOTAL)


def _train_candidate(generation: Generation) -> Iterator[JobProgress | Chunk]:
    """Train a builtin PRM on the snapshot, without the held-out set and without problems similar to evaluated ones."""
    assert generation.manifest is not None  # recorded with the stage
    labels = contamination_check.exclude_judging_problems(
        generation.project, labeled_traces.load_trace_labels(generation.manifest)
    )
    parts: list[StepFeatures] = []
    is_wrong: list[Bools] = []
    n_done = 0
    for part in paging.split(labels.traces, _TRACES_PER_REPORT):
        texts = labeled_traces.load_trace_texts(part)
        n_before, n_done = n_done, n_done + len(part)
        is_labeled, wrong = labeled_traces.mask_labeled_steps(texts, labels.first_errors[n_before:n_done])
        parts.append(builtin.take_steps(builtin.extract_features(texts), is_labeled))
        is_wrong.append(wrong)
        yield JobProgress(_SNAPSHOT_END + (_READING_END - _SNAPSHOT_END) * n_done // len(labels.traces), TOTAL)
    try:
        if not parts:
            raise TooFewLabels("the snapshot has no settled trace outside the held-out set")
        scorer = builtin.train_scorer(builtin.concatenate_features(parts), np.concatenate(is_wrong))
    except TooFewLabels as error:
        raise JobFailed(f"No PRM can be trained: {error}. Label more traces, then start again.") from None
    yield partial(_register_candidate, generation, scorer.to_bytes(), labels.traces)


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
    generations.advance_generation(
        generation=generation, stage=Stage.EVALUATE, now=now, candidate=prm, n_traces=len(trained)
    )
    return JobProgress(_TRAINING_END, TOTAL)


def _evaluate_candidate(generation: Generation) -> Iterator[JobProgress | Chunk]:
    candidate, manifest = generation.candidate, generation.manifest
    assert candidate is not None  # recorded with the stage
    assert manifest is not None
    current = registry.current_prm(generation.project_id)
    labeled = held_out_evaluation.load_held_out_set(manifest)
    held_out = held_out_evaluation.limit_to_scored_by(labeled, candidate, current)
    yield JobProgress(70, TOTAL)
    contamination = yield from contamination_check.audit_training_set(candidate, JobProgress(70, TOTAL))
    evaluation = held_out_evaluation.evaluate_prm(candidate, held_out, contamination=contamination)
    yield JobProgress(85, TOTAL)
    labels = labeled_traces.load_trace_labels(manifest)
    for domain, figure in held_out_evaluation.evaluate_domain_transfer(candidate, labels, held_out):
        evaluation.audits.setdefault("left_out", {})[domain] = figure
        evaluation.audits["domains"]["may_claim_all"] &= audits.holds_in_every_domain({domain: figure})
        yield JobProgress(90, TOTAL)
    is_current = current is not None and current.pk == candidate.pk
    before = held_out_evaluation.evaluate_prm(current, held_out) if current is not None and not is_current else None
    canary_report = yield from _test_canaries(candidate, None if is_current else current, evaluation)
    reason, comparison = held_out_evaluation.decide_gate(
        evaluation,
        before,
        margin=generations.load_loop_rules(generation.project).gate_margin,
        is_current=is_current,
        has_scores=held_out_evaluation.has_scores_for(candidate, labeled),
    )
    gate = {
        "why": reason.value,
        "comparison": comparison.to_json() if comparison else {},
        "alarms": evaluation.audits["alarms"],
        "contamination": evaluation.audits["audits"]["contamination"],
        "canaries": canary_report,
        "figures": evaluation.evaluation["figures"],
        "before": before.evaluation["figures"] if before else {},
        "counts": evaluation.evaluation["counts"],
    }
    yield partial(_record_gate, generation, candidate, current, evaluation, reason, gate)


def _test_canaries(
    candidate: PRM, current: PRM | None, evaluation: PRMEvaluation
) -> Generator[JobProgress | Chunk, None, dict[str, Any] | None]:
    """Let both PRMs score the gaming canaries, and add the result to the audits. Return None without canaries."""
    for prm in (candidate, current):
        if prm is not None:
            yield from canaries.score_missing(prm, JobProgress(95, TOTAL))
    candidate.calibration = evaluation.calibration  # stored with the gate
    report = canaries.build_prm_report(candidate, current)
    if report is not None:
        evaluation.audits["audits"]["canaries"] = canaries.summarize_as_audit(report)
        if evaluation.audits["audits"]["canaries"]["is_alarming"]:
            evaluation.audits["alarms"] = sorted([*evaluation.audits["alarms"], "canaries"])
    return report


def _record_gate(
    generation: Generation,
    candidate: PRM,
    current: PRM | None,
    evaluation: PRMEvaluation,
    reason: GateReason,
    gate: dict[str, Any],
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
    if gate["canaries"] is not None:
        canaries.log_alarm(prm=candidate, report=gate["canaries"], now=now)
    is_accepted = reason.verdict is Verdict.ACCEPTED
    winner = candidate if is_accepted else current
    generations.record_gate(
        generation=generation,
        verdict=reason.verdict,
        gate=gate,
        scored_with=winner,
        n_traces=_count_traces_to_score(winner),
        now=now,
    )
    if is_accepted:
        registry.make_current(prm=candidate, by=generation.started_by, now=now, why=reason)
    return JobProgress(TOTAL, TOTAL)


def _count_traces_to_score(prm: PRM | None) -> int:
    return 0 if prm is None or prm.backend == BackendKind.PUSHED else scores.unscored_traces(prm).count()
