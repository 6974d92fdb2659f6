"""How a project stands: overview, annotators, agreement. And what a lead does about a rater."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, render
from dashboard.agreement import page
from dashboard.annotator import page as annotator_page
from dashboard.annotators import page as annotators_page
from dashboard.forms import PauseAnnotatorForm
from dashboard.messages import page as messages_page
from dashboard.overview import page as overview_page
from dashboard.overview import todo
from labeling import onboarding, raters
from labeling.models import Rater
from labeling.models.rater_model import FitBasis
from labeling.quality.rater_model import load_current_fit
from people.models import Membership
from people.roles import Action

RECENT_WEEKS = 4  # that the charts of the overview can be cut down to


@require_safe
@never_cache
def show_overview(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    weeks = RECENT_WEEKS if request.GET.get("weeks") == str(RECENT_WEEKS) else None
    found = overview_page.load_overview(actor.project, timezone.now(), weeks=weeks)
    tables = [chart.table for chart in found.charts.values()] if found else []
    n_flagged = annotators_page.count_flagged_annotators(actor.project, found.shown) if found else 0
    waiting = todo.load_todo(actor, is_new=found is None, n_flagged=n_flagged)
    return render.project_page(
        request,
        actor,
        "dashboard/overview.html",
        here="overview",
        tables=tables,
        overview=found,
        todo=waiting,
        weeks=weeks,
    )


@require_safe
@never_cache
def show_agreement(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    found = page.load_agreement(actor.project, actor, part=request.GET.get("of", ""))
    return render.project_page(
        request,
        actor,
        "dashboard/agreement.html",
        here="agreement",
        tables=found.tables if found else [],
        agreement=found,
        fit=load_current_fit(actor.project.pk),
        assisted_fit=load_current_fit(actor.project.pk, FitBasis.ASSISTED),
    )


@require_safe
@never_cache
def show_annotators(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.PAUSE)
    asked = {name: request.GET.get(name, "")[:100] for name in ("choice", "q")}
    found = annotators_page.load_annotators(actor, timezone.now(), **asked)
    return render.project_page(
        request,
        actor,
        "dashboard/annotators.html",
        here="annotators",
        tables=[found.table, found.days],
        annotators=found,
        answered=messages_page.find_unseen_answers(actor.project),
    )


@require_safe
@never_cache
def show_annotator(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.PAUSE)
    members = Rater.objects.members().filter(project=actor.project).select_related("user")
    shown = annotator_page.load_annotator(get_object_or_404(members, pk=rater), actor, request.GET, timezone.now())
    tables = [shown.days.table] if shown.days else []
    return render.project_page(
        request, actor, "dashboard/annotator.html", here="annotators", tables=tables, shown=shown, rows=shown.page
    )


@require_POST
def pause_annotator(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, found = _load_rater(request, slug, rater)
    form = PauseAnnotatorForm(request.POST)
    if form.is_valid():
        raters.pause_rater(rater=found, by=actor.user, now=timezone.now(), **form.cleaned_data)
        messages.success(request, _("Paused. What is opened may be finished; the reason stands on their page."))
    else:
        messages.warning(request, _("Say why, in words that the person reads. Nothing was changed."))
    return redirect("dashboard:annotators", slug)


@require_POST
def resume_annotator(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, found = _load_rater(request, slug, rater)
    raters.resume_rater(rater=found, by=actor.user, now=timezone.now())
    messages.success(request, _("They go on, and are watched from here anew."))
    return redirect("dashboard:annotators", slug)


@require_POST
def retrain_annotator(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, found = _load_rater(request, slug, rater)
    onboarding.require_retraining(rater_id=found.pk, by=actor.user, now=timezone.now())
    messages.success(request, _("Training comes before their next trace."))
    return redirect("dashboard:annotators", slug)


def _load_rater(request: HttpRequest, slug: str, rater: int) -> tuple[Membership, Rater]:
    actor = access.membership_or_404(request, slug, Action.PAUSE)
    return actor, get_object_or_404(Rater.objects.select_related("project"), project=actor.project, pk=rater)
