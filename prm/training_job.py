"""The first job of a generation: snapshot, train, evaluate, gate. It goes on from the stage that its row names."""

import datetime as dt
from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.datasets import manifest as manifests
from labeling.datasets.selection import ManifestFilters
from labeling.models.assignment import AssignmentPurpose
from prm import contamination_check, generations, held_out_evaluation, registry, scores
from prm import trace_labels as labels_
from prm.backends.builtin import NAME, TooFewLabels
from prm.builtin_training import BuiltinTraining, weights_digest
from prm.evaluation import audits
from prm.evaluation.gate import GateDecision
from prm.held_out_evaluation import PRMEvaluation
from prm.models import PRM, Generation
from prm.models.generation import Stage
from prm.models.prm import BackendKind
from prm.registry import PRMIdentity

TOTAL = 100  # parts of a hundred: snapshot to 5, training to 60, evaluation to 100
_TRAINED_AT = 60


def run_training_job(job: Job) -> Iterator[JobProgress | Chunk]:
    pk = job.arguments["generation"]
    generation = _load_generation(pk)
    if generation.stage == Stage.SNAPSHOT:
        yield partial(_freeze_snapshot, generation)
    if generation.stage == Stage.TRAIN:
        yield from _train_candidate(generation)
    if generation.stage == Stage.EVALUATE:
        yield from _evaluate_candidate(generation)


def _load_generation(pk: int) -> Generation:
    return Generation.objects.select_related("project", "candidate", "manifest", "started_by").get(pk=pk)


def _freeze_snapshot(generation: Generation, now: dt.datetime) -> JobProgress:
    manifest = manifests.freeze_manifest(
        project=generation.project,
        filters=ManifestFilters(purposes=[AssignmentPurpose.WORK]),
        purpose="generation",
        now=now,
        by=generation.started_by,
    )
    generations.record_snapshot(generation=generation, manifest=manifest, now=now)
    return JobProgress(5, TOTAL)


def _train_candidate(generation: Generation) -> Iterator[JobProgress | Chunk]:
    assert generation.manifest is not None  # noted with the stage
    labels = contamination_check.exclude_judging_problems(
        generation.project, labels_.load_trace_labels(generation.manifest)
    )
    training = BuiltinTraining()
    for n in training.read(labels):
        yield JobProgress(5 + (_TRAINED_AT - 10) * n // max(len(labels.traces), 1), TOTAL)
    try:
        weights = training.scorer().to_bytes()
    except TooFewLabels as error:
        raise JobFailed(
            f"Nothing can be learnt from {training.n_traces} settled traces outside the reserve: {error}."
            " Label more traces, then start again."
        ) from None
    yield partial(_register_candidate, generation, weights, labels.traces)


def _register_candidate(generation: Generation, weights: bytes, trained: list[int], now: dt.datetime) -> JobProgress:
    identity = PRMIdentity(BackendKind.BUILTIN, NAME, digest=weights_digest(weights), weights=weights)
    prm = registry.register_prm(
        project=generation.project,
        identity=identity,
        by=generation.started_by,
        now=now,
        manifest=generation.manifest,
        trained=trained,
    )
    generations.record_candidate(generation=generation, prm=prm, n_traces=len(trained), now=now)
    return JobProgress(_TRAINED_AT, TOTAL)


def _evaluate_candidate(generation: Generation) -> Iterator[JobProgress | Chunk]:
    candidate, manifest = generation.candidate, generation.manifest
    assert candidate is not None  # noted with the stage
    assert manifest is not None
    current = registry.current_prm(generation.project_id)
    reserve = held_out_evaluation.limit_to_scored_by(
        held_out_evaluation.load_held_out_set(manifest), candidate, current
    )
    yield JobProgress(70, TOTAL)
    contamination = yield from _audit_contamination(candidate)
    found = held_out_evaluation.evaluate_prm(candidate, reserve, contamination=contamination)
    yield JobProgress(85, TOTAL)
    labels = labels_.load_trace_labels(manifest)
    for domain, told in held_out_evaluation.evaluate_domain_transfer(candidate, labels, reserve):
        found.audits.setdefault("left_out", {})[domain] = told
        found.audits["domains"]["may_claim_all"] &= audits.holds_in_every_domain({domain: told})
        yield JobProgress(90, TOTAL)
    is_current = current is not None and current.pk == candidate.pk
    before = held_out_evaluation.evaluate_prm(current, reserve) if current is not None and not is_current else None
    verdict = held_out_evaluation.compare_with_current(found, before, is_current=is_current)
    winner = candidate if verdict.has_passed else current
    yield partial(_record_gate, generation, candidate, found, before, verdict, winner)


def _audit_contamination(candidate: PRM) -> Generator[JobProgress, None, dict[str, Any]]:
    """Judging problems by the hundred thousand take minutes: a sign of life for each few hundred."""
    looking = contamination_check.audit_training_set(candidate)
    while True:
        try:
            next(looking)
        except StopIteration as ended:
            return dict(ended.value)
        yield JobProgress(70, TOTAL)


def _record_gate(
    generation: Generation,
    candidate: PRM,
    found: PRMEvaluation,
    before: PRMEvaluation | None,
    verdict: GateDecision,
    winner: PRM | None,
    now: dt.datetime,
) -> JobProgress:
    registry.record_evaluation(
        prm=candidate,
        evaluation=found.evaluation,
        audits=found.audits,
        calibration=found.calibration,
        threshold=found.threshold,
        now=now,
    )
    generations.record_gate(
        generation=generation,
        has_passed=verdict.has_passed,
        gate=_summarize_gate(found, before, verdict),
        scored_with=winner,
        now=now,
    )
    if verdict.has_passed:
        registry.make_current(prm=candidate, by=generation.started_by, now=now, why=verdict.why)
    is_askable = winner is not None and winner.backend != BackendKind.PUSHED
    n_traces = scores.unscored_traces(winner).count() if winner is not None and is_askable else 0
    generations.begin_scoring(generation=generation, n_traces=n_traces, now=now)
    return JobProgress(TOTAL, TOTAL)


def _summarize_gate(found: PRMEvaluation, before: PRMEvaluation | None, verdict: GateDecision) -> dict[str, Any]:
    """What stays with the generation: why, and the figures of both."""
    return {
        "why": verdict.why.value,
        "alarms": list(verdict.alarms),
        "contamination": found.audits["audits"]["contamination"],
        "figures": found.evaluation["figures"],
        "before": before.evaluation["figures"] if before else {},
        "counts": found.evaluation["counts"],
    }
