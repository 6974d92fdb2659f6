"""Background jobs of a project: list, cancel, retry."""

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import paging
from dashboard.access import membership_or_404
from dashboard.jobs import page
from dashboard.render import project_page
from exports.models import Delivery, Snapshot
from jobs import control
from jobs.models import Job
from labeling.models import Project
from people import roles
from people.roles import Action
from prm.models import PRM, Generation

_MAX_SUBJECTS = 100


@require_safe
@never_cache
def show_jobs(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.READ)
    rows = paging.paginate(_select_all_jobs(actor.project).select_related("asked_by"), request.GET, size=30)
    jobs = page.summarize_jobs(rows.rows, timezone.now())
    return project_page(
        request,
        actor,
        "dashboard/jobs.html",
        here="jobs",
        rows=rows,
        jobs=jobs,
        is_polling=any(job.is_under_way for job in jobs),
        may_act=roles.membership_may(actor, Action.BRING_IN),
    )


@require_POST
def retry_job(request: HttpRequest, slug: str, job: int) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.BRING_IN)
    try:
        control.retry_job(
            job=get_object_or_404(_select_own_jobs(actor.project), pk=job), by=actor.user, now=timezone.now()
        )
    except control.JobNotRetryable:
        messages.warning(request, _("This job is running or done, so it cannot be retried."))
    else:
        messages.success(request, _("Job restarted. It resumes where it stopped."))
    return redirect("dashboard:jobs", slug)


@require_POST
def cancel_job(request: HttpRequest, slug: str, job: int) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.BRING_IN)
    control.cancel_job(
        job=get_object_or_404(_select_own_jobs(actor.project), pk=job), by=actor.user, now=timezone.now()
    )
    messages.success(request, _("Cancelling. Finished work is kept."))
    return redirect("dashboard:jobs", slug)


def _select_own_jobs(project: Project) -> QuerySet[Job]:
    """Select the jobs that may be cancelled and retried on this page."""
    return Job.objects.filter(
        subject__in=[f"project:{project.pk}", *_list_subjects(PRM.objects.filter(project=project), "prm")]
    )


def _select_all_jobs(project: Project) -> QuerySet[Job]:
    parts = [
        *_list_subjects(Generation.objects.filter(project=project), "generation"),
        *_list_subjects(Snapshot.objects.filter(project=project), "snapshot"),
        *_list_subjects(Delivery.objects.filter(snapshot__project=project), "delivery"),
    ]
    return _select_own_jobs(project) | Job.objects.filter(subject__in=parts)


def _list_subjects(rows: QuerySet[Any], kind: str) -> list[str]:
    """List the subjects of the newest rows, as jobs name them."""
    return [f"{kind}:{pk}" for pk in rows.order_by("-pk").values_list("pk", flat=True)[:_MAX_SUBJECTS]]
