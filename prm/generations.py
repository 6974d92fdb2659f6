"""Generations, the rounds of training, scoring and selection: start, stop, and record the progress of each.

Only this module changes Generation rows. The work is done by the jobs in `training_job`, `scoring` and `batch_job`.
"""

import datetime as dt
import math
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from jobs import control
from jobs.models import Job, JobState
from labeling.models import Manifest, Project, Submission
from labeling.models.assignment import AssignmentPurpose
from prm import registry
from prm.models import PRM, Generation, LoopRules
from prm.models.generation import RUNNING, Stage
from prm.models.prm import BackendKind

TRAIN, SCORE, SELECT = "prm.generation", "prm.score", "prm.select"
MAX_SHARDS, TRACES_A_SHARD = 8, 20_000


class AlreadyRunning(Exception):
    """One generation runs at a time in a project."""


class NotRunning(Exception):
    """The generation has ended or was stopped."""


def start_generation(
    *, project: Project, by: User | None, now: dt.datetime, candidate: PRM | None = None, is_by_rule: bool = False
) -> Generation:
    """Start from a snapshot of the current labels; without a candidate, a builtin PRM is trained on it."""
    try:
        with transaction.atomic():
            last = Generation.objects.filter(project=project).aggregate(number=Max("number"))["number"] or 0
            generation = Generation.objects.create(
                project=project,
                number=last + 1,
                candidate=candidate,
                started_at=now,
                started_by=by,
                was_started_by_rule=is_by_rule,
            )
            _log_event("generation.started", generation, by, now)
            _request_job(TRAIN, generation, by, now)
    except IntegrityError:
        raise AlreadyRunning(_("A generation is already running. Wait until it ends, or stop it.")) from None
    return generation


def start_due_generations(*, now: dt.datetime) -> int:
    """Start a generation in every project whose rule is due, and return their number."""
    started = 0
    for rules in LoopRules.objects.filter(every_n_submissions__isnull=False).select_related("project"):
        project, every = rules.project, rules.every_n_submissions or 1
        if running_generation(project) is None and count_new_submissions(project) >= every:
            prm = registry.current_prm(project.pk)
            # A builtin PRM is trained again; any other one is evaluated again on the grown held-out set.
            candidate = None if prm is None or prm.backend == BackendKind.BUILTIN else prm
            start_generation(project=project, by=None, now=now, candidate=candidate, is_by_rule=True)
            started += 1
    return started


def count_new_submissions(project: Project) -> int:
    """Count the submissions of ordinary work since the last generation started."""
    last = Generation.objects.filter(project=project).order_by("-number").first()
    submissions = Submission.objects.filter(project=project, revision=1, assignment__purpose=AssignmentPurpose.WORK)
    return (submissions.filter(submitted_at__gt=last.started_at) if last else submissions).count()


def running_generation(project: Project) -> Generation | None:
    return Generation.objects.filter(project=project, stage__in=RUNNING).first()


def stop_generation(*, generation: Generation, by: User | None, now: dt.datetime) -> None:
    """Stop after the current chunk. A trained PRM, scores and draws are kept."""
    with transaction.atomic():
        ended = Generation.objects.filter(pk=generation.pk, stage__in=RUNNING).update(stage=Stage.STOPPED, ended_at=now)
        if not ended:
            raise NotRunning(_("This generation has already ended."))
        for job in jobs_of_generation(generation):
            control.cancel_job(job=job, by=by, now=now)
        _log_event("generation.stopped", generation, by, now)


def retry_generation(*, generation: Generation, by: User | None, now: dt.datetime) -> None:
    """Retry the failed jobs from their last checkpoint."""
    for job in jobs_of_generation(generation):
        if job.state == JobState.FAILED:
            control.retry_job(job=job, by=by, now=now)


def jobs_of_generation(generation: Generation) -> list[Job]:
    return list(Job.objects.filter(subject=generation.subject).order_by("pk"))


# --- progress: called by the jobs, in the transaction of their chunk -------------------------------------------------


def record_snapshot(*, generation: Generation, manifest: Manifest, now: dt.datetime) -> None:
    stage = Stage.TRAIN if generation.candidate_id is None else Stage.EVALUATE
    _advance_stage(generation, stage, manifest=manifest, n_submissions=manifest.n_rows)


def record_candidate(*, generation: Generation, prm: PRM, n_traces: int, now: dt.datetime) -> None:
    _advance_stage(generation, Stage.EVALUATE, candidate=prm, n_traces=n_traces)


def record_gate(
    *, generation: Generation, has_passed: bool, gate: dict[str, Any], scored_with: PRM | None, now: dt.datetime
) -> None:
    _advance_stage(generation, Stage.SCORE, has_passed=has_passed, gate=gate, scored_with=scored_with)
    detail = {"has_passed": has_passed, "why": gate.get("why", ""), "alarms": gate.get("alarms", [])}
    _log_event("generation.judged", generation, None, now, **detail)


def begin_scoring(*, generation: Generation, n_traces: int, now: dt.datetime) -> None:
    """Divide the traces among parallel jobs, or continue with the selection without traces."""
    shards = count_shards(n_traces)
    _advance_stage(generation, Stage.SCORE if shards else Stage.SELECT, shards_left=shards)
    for shard in range(shards):
        _request_job(
            SCORE, generation, generation.started_by, now, prm=generation.scored_with_id, shard=shard, of=shards
        )
    if not shards:
        _request_job(SELECT, generation, generation.started_by, now)


def count_shards(n_traces: int) -> int:
    return min(MAX_SHARDS, math.ceil(n_traces / TRACES_A_SHARD))


def record_finished_shard(*, generation_id: int, now: dt.datetime) -> None:
    """Count one shard as finished. The last one requests the selection."""
    generation = Generation.objects.select_for_update().get(pk=generation_id)
    if generation.stage != Stage.SCORE or not generation.shards_left:
        return
    Generation.objects.filter(pk=generation_id).update(shards_left=F("shards_left") - 1)
    if generation.shards_left == 1:
        _advance_stage(generation, Stage.SELECT, shards_left=0)
        _request_job(SELECT, generation, generation.started_by, now)


def record_batch(
    *,
    generation: Generation,
    batch: int,
    acquisition: str,
    n_policy: int,
    n_uniform: int,
    reading: dict[str, Any],
    drift: dict[str, Any],
    now: dt.datetime,
) -> None:
    """Record a drawn batch. Its length drift is shown with the gate's figures, but it is too late to block the gate."""
    gate = {**generation.gate, "length_drift": drift}
    _advance_stage(
        generation,
        Stage.SELECT,
        batch=batch,
        gate=gate,
        acquisition=acquisition,
        n_policy=n_policy,
        n_uniform=n_uniform,
        reading=reading,
    )


def finish_generation(*, generation: Generation, payoff: dict[str, Any], now: dt.datetime) -> None:
    _advance_stage(generation, Stage.DONE, payoff=payoff, ended_at=now)
    _log_event("generation.done", generation, None, now, batch=generation.batch, acquisition=generation.acquisition)


def _advance_stage(generation: Generation, stage: Stage, **changed: Any) -> None:
    """Update a running generation; raise NotRunning if it was stopped in the meantime."""
    updated = Generation.objects.filter(pk=generation.pk, stage__in=RUNNING).update(stage=stage, **changed)
    if not updated:
        raise NotRunning(_("The generation was stopped."))
    generation.stage = stage
    for name, value in changed.items():
        setattr(generation, name, value)


def _request_job(kind: str, generation: Generation, by: User | None, now: dt.datetime, **arguments: Any) -> None:
    control.request_job(
        kind=kind, subject=generation.subject, arguments={"generation": generation.pk, **arguments}, by=by, now=now
    )


def _log_event(what: str, generation: Generation, by: User | None, now: dt.datetime, **detail: Any) -> None:
    audit_log.log_event(
        what=what,
        by=by,
        now=now,
        project=generation.project_id,
        subject=generation.subject,
        detail={"number": generation.number, **detail},
    )
