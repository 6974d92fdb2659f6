"""Rounds of label, train, score, select: starts them, stops them, and keeps how far each has come. Alone changes
Generation rows. The work itself is done by jobs: `prm.training_job`, `prm.scoring`, `prm.batch_job`."""

import datetime as dt
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

TRAIN, SCORE, SELECT = "prm.generation", "prm.score", "prm.select"
MAX_SHARDS, TRACES_A_SHARD = 8, 20_000


class AlreadyRunning(Exception):
    """One generation runs at a time in a project."""


class NotRunning(Exception):
    """It has ended; nothing more comes of it."""


def start_generation(
    *, project: Project, by: User | None, now: dt.datetime, candidate: PRM | None = None, is_by_rule: bool = False
) -> Generation:
    """Begin with a snapshot of what is labelled now. Without a candidate a builtin PRM is trained from it."""
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
        raise AlreadyRunning(_("A generation is running already.")) from None
    return generation


def start_due_generations(*, now: dt.datetime) -> int:
    """Those that a rule starts: every so many submissions. Says how many were started."""
    started = 0
    for each in LoopRules.objects.filter(every_n_submissions__isnull=False).select_related("project"):
        if not running_generation(each.project) and count_new_submissions(each.project) >= (
            each.every_n_submissions or 1
        ):
            start_generation(
                project=each.project, by=None, now=now, candidate=_default_candidate(each.project), is_by_rule=True
            )
            started += 1
    return started


def _default_candidate(project: Project) -> PRM | None:
    """A builtin PRM is trained anew; any other is judged again on what the reserve has gained."""
    prm = registry.current_prm(project.pk)
    return None if prm is None or prm.backend == "builtin" else prm


def count_new_submissions(project: Project) -> int:
    """Submissions of work since the last generation began."""
    last = Generation.objects.filter(project=project).order_by("-number").first()
    made = Submission.objects.filter(project=project, revision=1, assignment__purpose=AssignmentPurpose.WORK)
    return (made.filter(submitted_at__gt=last.started_at) if last else made).count()


def running_generation(project: Project) -> Generation | None:
    return Generation.objects.filter(project=project, stage__in=RUNNING).first()


def stop_generation(*, generation: Generation, by: User | None, now: dt.datetime) -> None:
    """At the end of the chunk that it is at. What was trained, scored or drawn stays."""
    with transaction.atomic():
        ended = Generation.objects.filter(pk=generation.pk, stage__in=RUNNING).update(stage=Stage.STOPPED, ended_at=now)
        if not ended:
            raise NotRunning(_("This generation has ended already."))
        for job in jobs_of_generation(generation):
            control.cancel_job(job=job, by=by, now=now)
        _log_event("generation.stopped", generation, by, now)


def retry_generation(*, generation: Generation, by: User | None, now: dt.datetime) -> None:
    """Go on where a job of it failed."""
    for job in jobs_of_generation(generation):
        if job.state == JobState.FAILED:
            control.retry_job(job=job, by=by, now=now)


def jobs_of_generation(generation: Generation) -> list[Job]:
    return list(Job.objects.filter(subject=generation.subject).order_by("pk"))


# --- how far it has come: called by its jobs, in the transaction of their chunk -------------------------------------


def record_snapshot(*, generation: Generation, manifest: Manifest, now: dt.datetime) -> None:
    is_there = generation.candidate_id is not None
    _advance_stage(
        generation, Stage.EVALUATE if is_there else Stage.TRAIN, manifest=manifest, n_submissions=manifest.n_rows
    )


def record_candidate(*, generation: Generation, prm: PRM, n_traces: int, now: dt.datetime) -> None:
    _advance_stage(generation, Stage.EVALUATE, candidate=prm, n_traces=n_traces)


def record_gate(
    *, generation: Generation, has_passed: bool, gate: dict[str, Any], scored_with: PRM | None, now: dt.datetime
) -> None:
    _advance_stage(generation, Stage.SCORE, has_passed=has_passed, gate=gate, scored_with=scored_with)
    _log_event(
        "generation.judged",
        generation,
        None,
        now,
        has_passed=has_passed,
        why=gate.get("why", ""),
        alarms=gate.get("alarms", []),
    )


def begin_scoring(*, generation: Generation, n_traces: int, now: dt.datetime) -> None:
    """Share the traces out among jobs that run side by side; where there is nothing to score, select at once."""
    shards = min(MAX_SHARDS, -(-n_traces // TRACES_A_SHARD))
    _advance_stage(generation, Stage.SCORE if shards else Stage.SELECT, shards_left=shards)
    for shard in range(shards):
        _request_job(
            SCORE, generation, generation.started_by, now, prm=generation.scored_with_id, shard=shard, of=shards
        )
    if not shards:
        _request_job(SELECT, generation, generation.started_by, now)


def record_finished_shard(*, generation_id: int, now: dt.datetime) -> None:
    """The last of them asks for the selection: the row tells which one that is."""
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
    """The drift of what is served is shown beside the gate's figures; it comes too late to hold anything."""
    gate = {**generation.gate, "length_drift": drift}
    chosen = {"acquisition": acquisition, "n_policy": n_policy, "n_uniform": n_uniform, "reading": reading}
    _advance_stage(generation, Stage.SELECT, batch=batch, gate=gate, **chosen)


def finish_generation(*, generation: Generation, payoff: dict[str, Any], now: dt.datetime) -> None:
    _advance_stage(generation, Stage.DONE, payoff=payoff, ended_at=now)
    _log_event("generation.done", generation, None, now, batch=generation.batch, acquisition=generation.acquisition)


def _advance_stage(generation: Generation, stage: Stage, **changed: Any) -> None:
    """Only while it runs: what was stopped stays as it is."""
    moved = Generation.objects.filter(pk=generation.pk, stage__in=RUNNING).update(stage=stage, **changed)
    if not moved:
        raise NotRunning(_("The generation was stopped."))
    generation.stage = stage
    for name, value in changed.items():
        setattr(generation, name, value)


def _request_job(kind: str, generation: Generation, by: User | None, now: dt.datetime, **arguments: Any) -> None:
    control.request_job(
        kind=kind, subject=generation.subject, arguments={"generation": generation.pk, **arguments}, by=by, now=now
    )


def _log_event(what: str, generation: Generation, by: User | None, now: dt.datetime, **detail: Any) -> None:
    told = {"number": generation.number, **detail}
    audit_log.log_event(
        what=what, by=by, now=now, project=generation.project_id, subject=generation.subject, detail=told
    )
