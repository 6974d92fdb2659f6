"""Background jobs of a project, with their progress and remaining time. Leads can cancel and retry them."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dashboard import paging
from dashboard.access import post_view, safe_view
from dashboard.render import project_page
from dashboard.time_left import format_time_left
from exports.models import Delivery, Snapshot
from jobs import control
from jobs.models import Job, JobState
from labeling.models import Project, Rater
from labeling.models.rater import RaterKind
from machines.models import JudgeRun
from people import roles
from people.models import Membership
from people.roles import Action
from prm.models import PRM, Generation

# A package that adds a kind of job adds its label here. Without one, the page shows the kind.
JOB_LABELS: dict[str, str | Promise] = {
    "labeling.bring_in": _("Import traces"),
    "labeling.undo_import": _("Undo an import"),
    "labeling.change_overlap": _("Change the labels per trace"),
    "labeling.recount": _("Recompute agreement"),
    "labeling.set_aside": _("Set labels aside, or undo that"),
    "labeling.fit": _("Fit the rater model"),
    "prm.generation": _("Train and evaluate a PRM"),
    "prm.score": _("Score traces"),
    "prm.select": _("Select the next traces"),
    "prm.evaluate_file": _("Evaluate a PRM on a file"),
    "prm.canaries": _("Score gaming canaries"),
    "machines.judge": _("Run a judge"),
    "machines.route": _("Open a consensus route"),
    "machines.passport": _("Issue the passport of a machine"),
    "exports.prepare": _("Freeze a snapshot"),
    "exports.build_shard": _("Write a snapshot"),
    "exports.finish": _("Finish a snapshot"),
    "exports.deliver": _("Deliver a snapshot"),
}
_STANDALONE_SUBJECTS = ("project:", "prm:")
_MAX_SUBJECTS = 100


@dataclass(frozen=True)
class JobSummary:
    job: Job
    name: str
    percent: int | None
    time_left: str

    @property
    def is_standalone(self) -> bool:
        """Jobs of a generation or snapshot are cancelled and retried together, on that page."""
        return self.job.subject.startswith(_STANDALONE_SUBJECTS)

    @property
    def may_cancel(self) -> bool:
        return self.is_standalone and self.job.is_unfinished and not self.job.is_cancelling

    @property
    def may_retry(self) -> bool:
        return self.is_standalone and self.job.state in (JobState.FAILED, JobState.CANCELLED)


@safe_view(Action.READ)
def show_jobs(request: HttpRequest, actor: Membership) -> HttpResponse:
    now = timezone.now()
    rows = paging.paginate(_select_all_jobs(actor.project).select_related("asked_by"), request.GET, size=30)
    return project_page(
        request,
        actor,
        "dashboard/jobs.html",
        here="jobs",
        rows=rows,
        jobs=[_summarize_job(job, now) for job in rows.rows],
        is_polling=any(job.is_unfinished for job in rows.rows),
        may_act=roles.membership_may(actor, Action.BRING_IN),
    )


@post_view(Action.BRING_IN)
def retry_job(request: HttpRequest, actor: Membership, job: int) -> HttpResponse:
    row = get_object_or_404(_select_own_jobs(actor.project), pk=job)
    try:
        control.retry_job(job=row, by=actor.user, now=timezone.now())
    except control.JobNotRetryable:
        messages.warning(
            request, _("Only failed or canceled jobs can be retried. Reload the page to see the current state.")
        )
    else:
        messages.success(request, _("Job restarted. It resumes where it stopped."))
    return redirect("dashboard:jobs", actor.project.slug)


@post_view(Action.BRING_IN)
def cancel_job(request: HttpRequest, actor: Membership, job: int) -> HttpResponse:
    row = get_object_or_404(_select_own_jobs(actor.project), pk=job)
    control.cancel_job(job=row, by=actor.user, now=timezone.now())
    messages.success(request, _("Canceling the job. Work that is already done is kept."))
    return redirect("dashboard:jobs", actor.project.slug)


def _summarize_job(job: Job, now: dt.datetime) -> JobSummary:
    share, seconds = job.share_done(), job.remaining_seconds(now)
    return JobSummary(
        job=job,
        name=str(JOB_LABELS.get(job.kind, job.kind)),
        percent=None if share is None else int(share * 100),
        time_left="" if seconds is None else format_time_left(seconds),
    )


def _select_own_jobs(project: Project) -> QuerySet[Job]:
    """Select the jobs that may be cancelled and retried on this page."""
    subjects = [f"project:{project.pk}", *_list_subjects(PRM.objects.filter(project=project), "prm")]
    return Job.objects.filter(subject__in=subjects)


def _select_all_jobs(project: Project) -> QuerySet[Job]:
    parts = [
        *_list_subjects(Generation.objects.filter(project=project), "generation"),
        *_list_subjects(JudgeRun.objects.filter(judge__project=project), "judge_run"),
        *_list_subjects(Rater.objects.filter(project=project, kind=RaterKind.MACHINE), "machine_rater"),
        *_list_subjects(Snapshot.objects.filter(project=project), "snapshot"),
        *_list_subjects(Delivery.objects.filter(snapshot__project=project), "delivery"),
    ]
    return _select_own_jobs(project) | Job.objects.filter(subject__in=parts)


def _list_subjects(rows: QuerySet[Any], kind: str) -> list[str]:
    """List the subjects of the newest rows, as jobs name them."""
    return [f"{kind}:{pk}" for pk in rows.order_by("-pk").values_list("pk", flat=True)[:_MAX_SUBJECTS]]
