"""The first job of a generation: snapshot, train, evaluate, gate. It goes on from the stage that its row names."""

import datetime as dt
from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

from jobs.failures import Failed
from jobs.models import Job
from jobs.runner import Chunk, Progress
from labeling import manifest as manifests
from labeling.manifest import Filters
from labeling.models.assignment import Purpose
from prm import cleaning, contaminating, evaluating, generations, registry, scores, transfer
from prm import labels as labels_
from prm.backends.builtin import NAME, TooFewLabels
from prm.evaluating import Found
from prm.evaluation import audit_report
from prm.evaluation.gate import Verdict
from prm.models import PRM, Generation
from prm.models.generation import Stage
from prm.models.prm import BackendKind
from prm.registry import Identity
from prm.training import Training, digest

TOTAL = 100  # parts of a hundred: snapshot to 5, training to 60, evaluation to 100
_TRAINED_AT = 60


def chunks(job: Job) -> Iterator[Progress | Chunk]:
    pk = job.arguments["generation"]
    generation = _read(pk)
    if generation.stage == Stage.SNAPSHOT:
        yield partial(_snapshot, generation)
    if generation.stage == Stage.TRAIN:
        yield from _train(generation)
    if generation.stage == Stage.EVALUATE:
        yield from _evaluate(generation)


def _read(pk: int) -> Generation:
    return Generation.objects.select_related("project", "candidate", "manifest", "started_by").get(pk=pk)


def _snapshot(generation: Generation, now: dt.datetime) -> Progress:
    manifest = manifests.freeze(
        project=generation.project,
        filters=Filters(purposes=[Purpose.WORK]),
        purpose="generation",
        now=now,
        by=generation.started_by,
    )
    generations.note_snapshot(generation=generation, manifest=manifest, now=now)
    return Progress(5, TOTAL)


def _train(generation: Generation) -> Iterator[Progress | Chunk]:
    assert generation.manifest is not None  # noted with the stage
    labels = cleaning.for_training(generation.project, labels_.of_manifest(generation.manifest))
    training = Training()
    for n in training.read(labels):
        yield Progress(5 + (_TRAINED_AT - 10) * n // max(len(labels.traces), 1), TOTAL)
    try:
        weights = training.scorer().to_bytes()
    except TooFewLabels as error:
        raise Failed(
            f"Nothing can be learnt from {training.n_traces} settled traces outside the reserve: {error}."
            " Label more traces, then start again."
        ) from None
    yield partial(_register, generation, weights, labels.traces)


def _register(generation: Generation, weights: bytes, trained: list[int], now: dt.datetime) -> Progress:
    identity = Identity(BackendKind.BUILTIN, NAME, digest=digest(weights), weights=weights)
    prm = registry.register(
        project=generation.project,
        identity=identity,
        by=generation.started_by,
        now=now,
        manifest=generation.manifest,
        trained=trained,
    )
    generations.note_candidate(generation=generation, prm=prm, n_traces=len(trained), now=now)
    return Progress(_TRAINED_AT, TOTAL)


def _evaluate(generation: Generation) -> Iterator[Progress | Chunk]:
    candidate, manifest = generation.candidate, generation.manifest
    assert candidate is not None  # noted with the stage
    assert manifest is not None
    current = registry.current(generation.project_id)
    reserve = evaluating.known_to(evaluating.reserve_of(manifest), candidate, current)
    yield Progress(70, TOTAL)
    contamination = yield from _look(candidate)
    found = evaluating.judge(candidate, reserve, contamination=contamination)
    yield Progress(85, TOTAL)
    labels = labels_.of_manifest(manifest)
    for domain, told in transfer.left_out(candidate, labels, reserve):
        found.audits.setdefault("left_out", {})[domain] = told
        found.audits["domains"]["may_claim_all"] &= audit_report.holds_everywhere({domain: told})
        yield Progress(90, TOTAL)
    is_current = current is not None and current.pk == candidate.pk
    before = evaluating.judge(current, reserve) if current is not None and not is_current else None
    verdict = evaluating.compare(found, before, is_current=is_current)
    winner = candidate if verdict.has_passed else current
    yield partial(_judge, generation, candidate, found, before, verdict, winner)


def _look(candidate: PRM) -> Generator[Progress, None, dict[str, Any]]:
    """Judging problems by the hundred thousand take minutes: a sign of life for each few hundred."""
    looking = contaminating.look(candidate)
    while True:
        try:
            next(looking)
        except StopIteration as ended:
            return dict(ended.value)
        yield Progress(70, TOTAL)


def _judge(
    generation: Generation,
    candidate: PRM,
    found: Found,
    before: Found | None,
    verdict: Verdict,
    winner: PRM | None,
    now: dt.datetime,
) -> Progress:
    registry.note_evaluation(
        prm=candidate,
        evaluation=found.evaluation,
        audits=found.audits,
        calibration=found.calibration,
        threshold=found.threshold,
        now=now,
    )
    generations.note_gate(
        generation=generation,
        has_passed=verdict.has_passed,
        gate=_told(found, before, verdict),
        scored_with=winner,
        now=now,
    )
    if verdict.has_passed:
        registry.make_current(prm=candidate, by=generation.started_by, now=now, why=verdict.why)
    is_askable = winner is not None and winner.backend != BackendKind.PUSHED
    n_traces = scores.unscored(winner).count() if winner is not None and is_askable else 0
    generations.begin_scoring(generation=generation, n_traces=n_traces, now=now)
    return Progress(TOTAL, TOTAL)


def _told(found: Found, before: Found | None, verdict: Verdict) -> dict[str, Any]:
    """What stays with the generation: why, and the figures of both."""
    return {
        "why": verdict.why.value,
        "alarms": list(verdict.alarms),
        "contamination": found.audits["audits"]["contamination"],
        "figures": found.evaluation["figures"],
        "before": before.evaluation["figures"] if before else {},
        "counts": found.evaluation["counts"],
    }
