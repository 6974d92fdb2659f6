"""Passports of machine raters: issue them in the background, and let them expire. Only this module changes them.

A passport is valid for one prompt, model and guideline. It also expires when new traces that people and machine both
labeled show that their agreement dropped (`stats.drift`).
"""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet, Sum

from accounts.models import User
from events import audit_log
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Consensus, Project, Rater
from labeling.models.rater import RaterKind
from labeling.quality import consensus, submitted_reports
from machines import canary_reports, license_strata, passport_content, passport_data, pool_figures
from machines.label_weights import find_chosen_traces, load_label_weights
from machines.models import Judge, JudgedTrace, JudgeVote, MachinePassport
from machines.passport_models import PassportEnd
from stats import drift
from stats.alternative_annotator import EPSILONS

KIND = "machines.passport"
DEFAULT_EPSILON = EPSILONS["skilled"]
CHECK_EVERY = dt.timedelta(minutes=10)
_MAX_RETESTS = 2_000


def request_passport(*, rater: Rater, epsilon: float, by: User | None, now: dt.datetime) -> Job:
    """Compute a new passport in the background."""
    arguments = {"rater": rater.pk, "epsilon": epsilon, "by": by.pk if by else None}
    return control.request_job(kind=KIND, subject=f"machine_rater:{rater.pk}", arguments=arguments, by=by, now=now)


def run_passport_job(job: Job) -> Iterator[JobProgress | Chunk]:
    rater = Rater.objects.select_related("project").get(pk=job.arguments["rater"], kind=RaterKind.MACHINE)
    yield JobProgress(0, 1)
    content = build_passport(rater, epsilon=job.arguments["epsilon"])
    by = User.objects.filter(pk=job.arguments["by"]).first()
    yield partial(_save, rater, content, by)


def build_passport(rater: Rater, *, epsilon: float) -> dict[str, Any]:
    """Compute the content of a passport, without storing it."""
    traces = passport_data.load_compared_traces(rater)
    ids = [row.trace for row in traces]
    weights, chosen = load_label_weights(rater.project_id, ids), find_chosen_traces(rater.project_id, ids)
    return {
        **passport_content.build_content(
            [row for row in traces if row.trace not in chosen], epsilon=epsilon, cost=_measure_cost(rater)
        ),
        "strata": license_strata.build_strata(traces, weights),
        "n_judged": passport_data.select_judged(rater).count(),
        "n_unread": JudgedTrace.objects.filter(judge__rater=rater, submission=None).count(),
        "pool": pool_figures.build_pool_figures(traces, weights),
        "canaries": canary_reports.build_rater_report(rater),
    }


def _save(rater: Rater, content: dict[str, Any], by: User | None, now: dt.datetime) -> JobProgress:
    issue_passport(rater=rater, content=content, by=by, now=now)
    return JobProgress(1, 1)


def issue_passport(*, rater: Rater, content: dict[str, Any], by: User | None, now: dt.datetime) -> MachinePassport:
    """Store a passport, which replaces the valid one."""
    with transaction.atomic():
        Rater.objects.select_for_update(no_key=True).get(pk=rater.pk)
        project = Project.objects.get(pk=rater.project_id)
        MachinePassport.objects.valid().filter(rater=rater).update(expired_at=now, expired_because=PassportEnd.REPLACED)
        passport = MachinePassport.objects.create(
            project=project,
            rater=rater,
            content=content,
            identity=describe_identity(rater),
            guideline_id=project.guideline_id,
            accuracy=content["overall"]["accuracy"]["value"],
            epsilon=content["test"]["epsilon"],
            passes_test=content["test"]["is_passed"],
            issued_at=now,
            issued_by=by,
            checked_at=now,
        )
        _log_event("passport.issued", passport, by, now, judged=content["n_judged"], accuracy=passport.accuracy)
    return passport


def describe_identity(rater: Rater) -> dict[str, str]:
    """Return what the figures of a machine depend on: the prompt, and the model as the endpoint names it."""
    judge = Judge.objects.filter(rater=rater).first()
    if judge is None:
        return {}
    votes = JudgeVote.objects.filter(judge=judge).exclude(served_model="").order_by("-pk")
    served = votes.values_list("served_model", flat=True).first() or judge.model
    return {PassportEnd.PROMPT: judge.prompt_digest, PassportEnd.MODEL: f"{served} {judge.model_digest}".strip()}


def _measure_cost(rater: Rater) -> dict[str, float] | None:
    judged = JudgedTrace.objects.filter(judge__rater=rater)
    n = judged.count()
    if not n:
        return None
    total = judged.aggregate(tokens=Sum(F("prompt_tokens") + F("completion_tokens")), money=Sum("money"))
    return {"tokens": total["tokens"] / n, "money": float(total["money"]) / n}


def find_valid_passport(rater: Rater) -> MachinePassport | None:
    return MachinePassport.objects.valid().filter(rater=rater).first()


def list_history(rater: Rater) -> QuerySet[MachinePassport]:
    """Return all passports of a machine, newest first."""
    return rater.passports.select_related("issued_by", "guideline").order_by("-issued_at", "-pk")


def list_valid(project: Project) -> QuerySet[MachinePassport]:
    return MachinePassport.objects.valid().filter(project=project).select_related("rater", "project").order_by("pk")


# The checks


def check_passports(*, now: dt.datetime) -> int:
    """Let passports expire that are out of date. Return how many expired."""
    due = MachinePassport.objects.valid().filter(checked_at__lte=now - CHECK_EVERY)
    rows = due.select_related("rater", "project").order_by("pk")
    return sum(check_passport(passport=row, now=now) for row in rows)


def check_passport(*, passport: MachinePassport, now: dt.datetime) -> bool:
    """Compare prompt, model, guideline and new labels. Return whether the passport has expired."""
    reason, n_retests = _find_change(passport), 0
    if reason is None:
        retests = load_retests(passport)
        n_retests = len(retests)
        if passport.accuracy is not None:
            alarm = drift.find_alarm(retests, drift.plan_drift_test(passport.accuracy))
            reason = PassportEnd.DRIFT if alarm is not None else None
    with transaction.atomic():
        valid = MachinePassport.objects.valid().filter(pk=passport.pk)
        if reason is None:
            valid.update(checked_at=now, n_retests=n_retests)
            return False
        if valid.update(checked_at=now, n_retests=n_retests, expired_at=now, expired_because=reason):
            _log_event("passport.expired", passport, None, now, why=reason.value, retests=n_retests)
    return True


def _find_change(passport: MachinePassport) -> PassportEnd | None:
    if passport.guideline_id != passport.project.guideline_id:
        return PassportEnd.GUIDELINE
    current = describe_identity(passport.rater)
    return next((PassportEnd(key) for key, value in passport.identity.items() if current.get(key) != value), None)


def load_retests(passport: MachinePassport) -> list[bool]:
    """Return for each trace that people settled since the passport was issued, whether the machine agrees, oldest
    first. Traces that the policy or a person chose are left out: they are harder than those of the passport."""
    rows = consensus.current_revisions(project_id=passport.project_id).filter(made_at__gt=passport.issued_at)
    newest = rows.order_by("-made_at", "-pk").values_list("trace", "first_error")[:_MAX_RETESTS]
    references = dict(reversed(list(newest)))
    earlier = Consensus.objects.filter(trace__in=references, made_at__lte=passport.issued_at)
    known = set(earlier.values_list("trace", flat=True))
    known |= find_chosen_traces(passport.project_id, list(references))
    machine = _load_machine_ends(passport.rater, [trace for trace in references if trace not in known])
    return [machine[trace] == first_error for trace, first_error in references.items() if trace in machine]


def _load_machine_ends(rater: Rater, trace_ids: list[int]) -> dict[int, int | None]:
    work = passport_data.select_work(rater).filter(trace__in=trace_ids).values_list("pk", "submitted_revision")
    return {each.trace_id: each.position for each in submitted_reports.load_revision_reports(list(work))}


def _log_event(what: str, passport: MachinePassport, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(
        what=what,
        by=by,
        now=now,
        project=passport.project_id,
        subject=f"machine_rater:{passport.rater_id}",
        detail={"machine": passport.rater.machine, "passport": passport.pk, **detail},
    )
