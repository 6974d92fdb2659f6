"""Start, cancel, resume and pause the runs of judges. `machines.judge_job` does the work."""

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, Max, OuterRef, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from jobs import control
from jobs.models import Job, JobState
from labeling.models import Assignment, Gold, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterKind
from labeling.models.trace import TraceKind
from machines import canary_votes
from machines.models import (
    CanaryVerdict,
    CanaryVote,
    Judge,
    JudgeContractKind,
    JudgedTrace,
    JudgeRun,
    JudgeRunState,
    JudgeVote,
    RunPause,
    RunScope,
    VoteState,
)
from prm.models import Score
from prm.models.prm import BackendKind

KIND = "machines.judge"
TRIAL_TRACES = 3
_RESUME_MINUTES = (1, 2, 5, 10, 30)


class RunRefused(Exception):
    """The run cannot start or resume. The message is for the person who asked."""


def start_run(
    *,
    judge: Judge,
    by: User | None,
    now: dt.datetime,
    scope: str = RunScope.ALL,
    most_traces: int | None = None,
    most_tokens: int | None = None,
    most_money: Decimal | None = None,
    is_trial: bool = False,
) -> JudgeRun:
    """Start judging the traces that this judge has not judged yet. Votes of earlier runs count; votes that failed are
    asked for again."""
    if not is_trial and not judge.may_run:
        raise RunRefused(_("This prompt was edited. Try it on three traces first."))
    if judge.contract == JudgeContractKind.PRM and is_trial:
        raise RunRefused(_("A PRM has no prompt to try. Start a run."))
    if judge.contract == JudgeContractKind.POLICY and judge.project.guideline_id is None:
        raise RunRefused(_("This judge checks clauses of the guideline. Publish a guideline first."))
    if scope == RunScope.CANARIES and is_trial:
        raise RunRefused(_("A trial asks about traces. Start a run to test this judge on canaries."))
    if scope == RunScope.CANARIES and judge.contract == JudgeContractKind.ROLLOUTS:
        raise RunRefused(
            _("Monte Carlo raters are not tested on canaries, which have no reference answer. See their passport.")
        )
    most_traces = TRIAL_TRACES if is_trial else None if scope == RunScope.CANARIES else most_traces
    try:
        with transaction.atomic():
            _forget_failed(judge)
            last = Trace.objects.filter(project=judge.project_id).aggregate(last=Max("pk"))["last"] or 0
            run = JudgeRun(
                judge=judge,
                scope=scope,
                is_trial=is_trial,
                last_trace=last,
                most_traces=most_traces,
                most_tokens=most_tokens,
                most_money=most_money,
                asked_at=now,
                asked_by=by,
            )
            run.n_traces = _limit(_count_missing(run), most_traces)
            if not run.n_traces:
                raise RunRefused(_describe_nothing_to_do(run))
            run.save()
            _request_job(run, by, now)
            _log_event("judge_run.started", run, by, now, scope=scope, traces=run.n_traces, trial=is_trial)
    except IntegrityError:
        raise RunRefused(_("This judge has an unfinished run. Resume or cancel it first.")) from None
    return run


def _count_missing(run: JudgeRun) -> int:
    if run.scope != RunScope.CANARIES:
        return select_traces(run).count()
    _forget_failed_canaries(run.judge)
    return canary_votes.select_missing(run.judge).count()


def _describe_nothing_to_do(run: JudgeRun) -> str:
    judge = run.judge
    if run.scope == RunScope.CANARIES:
        return _("No canary is left that this judge can score. Freeze canaries first.")
    if judge.contract == JudgeContractKind.ROLLOUTS:
        return _("No trace with a reference answer is left in this scope.")
    if judge.contract == JudgeContractKind.PRM:
        return _("No trace is left in this scope that this PRM has scored or can score.")
    return _("This judge has already judged all of these traces.")


def _limit(n: int, most: int | None) -> int:
    return n if most is None else min(n, most)


def _forget_failed(judge: Judge) -> None:
    JudgedTrace.objects.filter(judge=judge, submission=None, n_failed__gt=0).delete()
    JudgeVote.objects.filter(judge=judge, state=VoteState.FAILED, trace__in=_unjudged(judge)).delete()


def _forget_failed_canaries(judge: Judge) -> None:
    CanaryVerdict.objects.filter(judge=judge, n_parsed=0, n_failed__gt=0).delete()
    missing = canary_votes.select_missing(judge).values("pk")
    CanaryVote.objects.filter(judge=judge, state=VoteState.FAILED, canary__in=missing).delete()


def _unjudged(judge: Judge) -> QuerySet[Trace]:
    judged = JudgedTrace.objects.filter(judge=judge, trace=OuterRef("pk"))
    return Trace.objects.filter(~Exists(judged), project=judge.project_id)


def select_traces(run: JudgeRun) -> QuerySet[Trace]:
    """Return the traces of a run that are not judged yet. A trial judges no trace: it only stores its votes."""
    traces = _unjudged(run.judge).filter(withdrawn_at=None, kind=TraceKind.PREGENERATED, pk__lte=run.last_trace)
    if run.scope == RunScope.LABELED:
        work = Assignment.objects.counted().filter(trace=OuterRef("pk"), purpose=AssignmentPurpose.WORK)
        traces = traces.filter(Exists(work.exclude(rater__kind=RaterKind.MACHINE)))
    elif run.scope == RunScope.GOLD:
        traces = traces.filter(Exists(Gold.objects.active().filter(trace=OuterRef("pk"))))
    if run.judge.contract == JudgeContractKind.ROLLOUTS:  # their answers are compared with it
        traces = traces.exclude(problem__reference_answer=None).exclude(problem__reference_answer="")
    elif run.judge.contract == JudgeContractKind.PRM:
        traces = traces.filter(n_steps__gt=0)
        if run.judge.prm is not None and run.judge.prm.backend == BackendKind.PUSHED:
            traces = traces.filter(Exists(Score.objects.filter(prm=run.judge.prm, trace=OuterRef("pk"))))
    return traces.order_by("pk")


def cancel_run(*, run: JudgeRun, by: User | None, now: dt.datetime) -> None:
    """End a run. Answers of requests that are under way are still stored."""
    with transaction.atomic():
        ended = JudgeRun.objects.unfinished().filter(pk=run.pk)
        if ended.update(state=JudgeRunState.CANCELLED, ended_at=now, pause="", pause_line="", resumes_at=None):
            _log_event("judge_run.cancelled", run, by, now)
            for job in Job.objects.filter(subject=run.subject, state=JobState.QUEUED):
                control.cancel_job(job=job, by=None, now=now)


def resume_run(*, run: JudgeRun, by: User | None, now: dt.datetime) -> None:
    """Continue a paused run, or one whose job failed."""
    with transaction.atomic():
        row = JudgeRun.objects.select_for_update().select_related("judge").get(pk=run.pk)
        if row.state == JudgeRunState.OPEN and _has_unfinished_job(row):
            raise RunRefused(_("The run is not paused."))
        if not row.is_unfinished:
            raise RunRefused(_("The run has ended. Start a new one."))
        row.state, row.pause, row.pause_line, row.resumes_at = JudgeRunState.OPEN, "", "", None
        row.save(update_fields=["state", "pause", "pause_line", "resumes_at"])
        _request_job(row, by, now)
        if by is not None:
            _log_event("judge_run.resumed", row, by, now)


def _has_unfinished_job(run: JudgeRun) -> bool:
    return Job.objects.unfinished().filter(subject=run.subject).exists()


def resume_due_runs(*, now: dt.datetime) -> int:
    """Continue the runs whose wait is over. Return how many."""
    due = list(JudgeRun.objects.filter(state=JudgeRunState.PAUSED, resumes_at__lte=now).order_by("pk"))
    for run in due:
        resume_run(run=run, by=None, now=now)
    return len(due)


def pause_run(*, run: JudgeRun, pause: RunPause, line: str, now: dt.datetime, retry_after: float | None = None) -> None:
    """Stop asking. If waiting may help, the run continues by itself, after longer waits each time."""
    resumes_at = None
    if pause in (RunPause.ENDPOINT_DOWN, RunPause.RATE_LIMIT):
        minutes = _RESUME_MINUTES[min(run.n_pauses, len(_RESUME_MINUTES) - 1)]
        wait = dt.timedelta(minutes=minutes)
        resumes_at = now + (wait if retry_after is None else max(wait, dt.timedelta(seconds=min(retry_after, 86_400))))
    changed = JudgeRun.objects.filter(pk=run.pk, state=JudgeRunState.OPEN).update(
        state=JudgeRunState.PAUSED,
        pause=pause,
        pause_line=line[:500],
        resumes_at=resumes_at,
        n_pauses=F("n_pauses") + 1,
        reserved_tokens=0,
        reserved_money=0,
    )
    if changed:
        _log_event("judge_run.paused", run, None, now, why=pause.value, line=line[:500])


def finish_run(*, run: JudgeRun, now: dt.datetime) -> None:
    ended = JudgeRun.objects.filter(pk=run.pk, state=JudgeRunState.OPEN)
    if ended.update(state=JudgeRunState.DONE, ended_at=now, reserved_tokens=0, reserved_money=0):
        counts = {"traces": run.n_judged, "labeled": run.n_labeled, "tokens": run.tokens, "money": str(run.money)}
        _log_event("judge_run.done", run, None, now, **counts)


def _request_job(run: JudgeRun, by: User | None, now: dt.datetime) -> None:
    job = control.request_job(kind=KIND, subject=run.subject, arguments={"run": run.pk}, by=by, now=now)
    JudgeRun.objects.filter(pk=run.pk).update(job=job.pk)
    run.job = job.pk


def load_jobs(runs: Iterable[JudgeRun]) -> dict[int, Job]:
    """Return the latest job of each run, by its id."""
    return Job.objects.in_bulk([run.job for run in runs if run.job is not None])


def _log_event(what: str, run: JudgeRun, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(
        what=what,
        by=by,
        now=now,
        project=run.judge.project_id,
        subject=run.subject,
        detail={"judge": run.judge.label, **detail},
    )
