"""One annotator: showing their work, pausing, resuming and retraining them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, render
from dashboard.annotator import page
from dashboard.annotator.forms import PauseAnnotatorForm
from labeling import onboarding, raters
from labeling.models import Rater
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def show_annotator(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.PAUSE)
    members = Rater.objects.members().filter(project=actor.project).select_related("user")
    annotator = page.load_annotator(get_object_or_404(members, pk=rater), actor, request.GET, timezone.now())
    return render.project_page(
        request,
        actor,
        "dashboard/annotator.html",
        here="annotators",
        tables=[annotator.days.table] if annotator.days else [],
        annotator=annotator,
        person=annotator.person,
        rows=annotator.page,
    )


@require_POST
def pause_annotator(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, row = _load_rater(request, slug, rater)
    form = PauseAnnotatorForm(request.POST)
    if form.is_valid():
        raters.pause_rater(rater=row, by=actor.user, now=timezone.now(), **form.cleaned_data)
        messages.success(request, _("Paused. Open traces can still be finished. The annotator sees your reason."))
    else:
        messages.warning(request, _("Not paused: write a reason for the annotator."))
    return redirect("dashboard:annotators", slug)


@require_POST
def resume_annotator(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, row = _load_rater(request, slug, rater)
    raters.resume_rater(rater=row, by=actor.user, now=timezone.now())
    messages.success(request, _("Resumed. Quality monitoring starts over."))
    return redirect("dashboard:annotators", slug)


@require_POST
def retrain_annotator(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, row = _load_rater(request, slug, rater)
    onboarding.require_retraining(rater_id=row.pk, by=actor.user, now=timezone.now())
    messages.success(request, _("Retraining required. It comes before their next trace."))
    return redirect("dashboard:annotators", slug)


def _load_rater(request: HttpRequest, slug: str, rater: int) -> tuple[Membership, Rater]:
    actor = access.membership_or_404(request, slug, Action.PAUSE)
    return actor, get_object_or_404(Rater.objects.select_related("project"), project=actor.project, pk=rater)
