"""Generations, the rounds of training, scoring and selection: start and stop them, record their progress, set rules.

Only this module changes Generation and LoopRules rows. `training_job`, `scores` and `batch_job` do the work.
"""

import datetime as dt
import math
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from jobs import control
from jobs.models import Job, JobState
from labeling.models import Project, Submission
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterKind
from prm import registry
from prm.evaluation.gate import Verdict
from prm.models import PRM, Generation, LoopRules
from prm.models.generation import MAX_GATE_MARGIN, RUNNING, Stage
from prm.models.prm import BackendKind
from prm.selection import acquisitions

TRAIN, SCORE, SELECT = "prm.generation", "prm.score", "prm.select"
MAX_SHARDS, TRACES_A_SHARD = 8, 20_000
RANDOM = "random"  # the acquisition function after a fallback


class AlreadyRunning(Exception):
    """One generation runs at a time in a project."""


class NotRunning(Exception):
    """The generation has ended or was stopped."""


class InvalidLoopRule(ValueError):
    """The settings would make drawing impossible. The message is for the person who saves them."""


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
            _request_job(TRAIN, generation, now)
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
    """Count the submissions of ordinary work by people since the last generation started. Training leaves out those of
    people who saw a machine's labels, and those that were set aside."""
    last = Generation.objects.filter(project=project).order_by("-number").first()
    submissions = Submission.objects.filter(project=project, revision=1, assignment__purpose=AssignmentPurpose.WORK)
    submissions = submissions.filter(assignment__is_assisted=False, assignment__set_aside=None)
    submissions = submissions.exclude(assignment__rater__kind=RaterKind.MACHINE)
    return (submissions.filter(submitted_at__gt=last.started_at) if last else submissions).count()


def running_generation(project: Project) -> Generation | None:
    return Generation.objects.filter(project=project, stage__in=RUNNING).first()


def stop_generation(*, generation: Generation, by: User | None, now: dt.datetime) -> None:
    """Stop after the current chunk. A trained PRM, scores and draws are kept."""
    with transaction.atomic():
        ended = Generation.objects.filter(pk=generation.pk, stage__in=RUNNING).update(stage=Stage.STOPPED, ended_at=now)
        if not ended:
            raise NotRunning(_("This generation has already ended. Reload the page."))
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


def advance_generation(*, generation: Generation, stage: Stage, now: dt.datetime, **changed: Any) -> None:
    """Update a running generation; raise NotRunning if it was stopped in the meantime."""
    changed |= {"stage": stage} if stage in RUNNING else {"stage": stage, "ended_at": now}
    if not Generation.objects.filter(pk=generation.pk, stage__in=RUNNING).update(**changed):
        raise NotRunning(_("The generation was stopped."))
    for name, value in changed.items():
        setattr(generation, name, value)


def record_gate(
    *,
    generation: Generation,
    verdict: Verdict,
    gate: dict[str, Any],
    scored_with: PRM | None,
    n_traces: int,
    now: dt.datetime,
) -> None:
    """Record the decision. Divide the traces among parallel jobs, or continue with the selection without traces."""
    shards = count_shards(n_traces)
    advance_generation(
        generation=generation,
        stage=Stage.SCORE if shards else Stage.SELECT,
        now=now,
        verdict=verdict,
        gate=gate,
        scored_with=scored_with,
        shards_left=shards,
    )
    detail = {"verdict": verdict, "why": gate.get("why", ""), "alarms": gate.get("alarms", [])}
    _log_event("generation.judged", generation, None, now, **detail)
    for shard in range(shards):
        _request_job(SCORE, generation, now, prm=generation.scored_with_id, shard=shard, of=shards)
    if not shards:
        _request_job(SELECT, generation, now)


def count_shards(n_traces: int) -> int:
    return min(MAX_SHARDS, math.ceil(n_traces / TRACES_A_SHARD))


def record_finished_shard(*, generation_id: int, now: dt.datetime) -> None:
    """Count one shard as finished. The last one requests the selection."""
    generation = Generation.objects.select_for_update().get(pk=generation_id)
    if generation.stage != Stage.SCORE or not generation.shards_left:
        return
    left = generation.shards_left - 1
    stage = Stage.SCORE if left else Stage.SELECT
    advance_generation(generation=generation, stage=stage, now=now, shards_left=left)
    if not left:
        _request_job(SELECT, generation, now)


def finish_generation(*, generation: Generation, payoff: dict[str, Any], now: dt.datetime) -> None:
    advance_generation(generation=generation, stage=Stage.DONE, now=now, payoff=payoff)
    _log_event("generation.done", generation, None, now, batch=generation.batch, acquisition=generation.acquisition)


def _request_job(kind: str, generation: Generation, now: dt.datetime, **arguments: Any) -> None:
    control.request_job(
        kind=kind,
        subject=generation.subject,
        arguments={"generation": generation.pk, **arguments},
        by=generation.started_by,
        now=now,
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


# --- rules of selection -----------------------------------------------------------------------------------------------


def load_loop_rules(project: Project) -> LoopRules:
    """Return the saved settings, or unsaved defaults."""
    return LoopRules.objects.filter(project=project).first() or LoopRules(project=project)


def effective_acquisition(rules: LoopRules) -> str:
    """Return the acquisition function for the next batch: random after a fallback, else the chosen one."""
    return RANDOM if rules.fell_back_at else rules.acquisition


def change_loop_rules(*, project: Project, by: User | None, now: dt.datetime, **changed: Any) -> LoopRules:
    """Save settings. Choosing an acquisition function ends a fallback to random."""
    rules = load_loop_rules(project)
    for name, value in changed.items():
        setattr(rules, name, value)
    try:
        acquisitions.find_acquisition(rules.acquisition)
    except acquisitions.UnknownAcquisition as error:
        raise InvalidLoopRule(str(error)) from None
    if not (rules.temperature > 0 and 0 < rules.domain_quota <= 1 and rules.batch_size >= 1):
        raise InvalidLoopRule(
            _(
                "Enter a temperature above 0, a maximum share per domain above 0 and up to 1, and a batch size"
                " of at least 1."
            )
        )
    if not 0 < rules.gate_margin <= MAX_GATE_MARGIN:
        raise InvalidLoopRule(_("Enter a gate margin above 0 and up to %(most)s.") % {"most": MAX_GATE_MARGIN})
    rules.fell_back_at = None if "acquisition" in changed else rules.fell_back_at
    _save_rules(rules, "loop_rules.changed", by=by, now=now, detail=changed)
    return rules


def fall_back_to_random(*, project: Project, now: dt.datetime) -> None:
    """Draw at random from now on, because active selection showed no gain."""
    rules = load_loop_rules(project)
    if rules.fell_back_at is None:
        rules.fell_back_at = now
        _save_rules(rules, "selection.fell_back", by=None, now=now, detail={"from": rules.acquisition})


def _save_rules(rules: LoopRules, what: str, *, by: User | None, now: dt.datetime, detail: dict[str, Any]) -> None:
    with transaction.atomic():
        rules.save()
        audit_log.log_event(what=what, by=by, now=now, project=rules.project_id, subject="loop_rules", detail=detail)
