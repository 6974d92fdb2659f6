"""How a project stands: overview, annotators, agreement. And what a lead does about a rater."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import agreement_page, annotators_page, door, overview, page, person_page, threads, todo
from dashboard.forms import PauseForm
from labeling import admission, quality, raters
from labeling.models import Rater
from labeling.models.fit import FitBasis
from people.models import Membership
from people.roles import Action

WEEKS = 4  # that the charts of the overview can be cut down to


@require_safe
@never_cache
def show_overview(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.READ)
    weeks = WEEKS if request.GET.get("weeks") == str(WEEKS) else None
    found = overview.of(actor.project, timezone.now(), weeks=weeks)
    tables = [chart.table for chart in found.charts.values()] if found else []
    n_flagged = annotators_page.n_flagged(actor.project, found.shown) if found else 0
    waiting = todo.of(actor, is_new=found is None, n_flagged=n_flagged)
    return page.show(
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
    actor = door.enter(request, slug, Action.READ)
    found = agreement_page.of(actor.project, actor, part=request.GET.get("of", ""))
    return page.show(
        request,
        actor,
        "dashboard/agreement.html",
        here="agreement",
        tables=found.tables if found else [],
        agreement=found,
        fit=quality.fit_of(actor.project.pk),
        assisted_fit=quality.fit_of(actor.project.pk, FitBasis.ASSISTED),
    )


@require_safe
@never_cache
def show_annotators(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.PAUSE)
    asked = {name: request.GET.get(name, "")[:100] for name in ("choice", "q")}
    found = annotators_page.of(actor, timezone.now(), **asked)
    return page.show(
        request,
        actor,
        "dashboard/annotators.html",
        here="annotators",
        tables=[found.table, found.days],
        annotators=found,
        answered=threads.answered(actor.project),
    )


@require_safe
@never_cache
def show_annotator(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.PAUSE)
    members = Rater.objects.members().filter(project=actor.project).select_related("user")
    shown = person_page.of(get_object_or_404(members, pk=rater), actor, request.GET, timezone.now())
    tables = [shown.days.table] if shown.days else []
    return page.show(
        request, actor, "dashboard/person.html", here="annotators", tables=tables, shown=shown, rows=shown.page
    )


@require_POST
def pause_rater(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, found = _pair(request, slug, rater)
    form = PauseForm(request.POST)
    if form.is_valid():
        raters.pause(rater=found, by=actor.user, now=timezone.now(), **form.cleaned_data)
        messages.success(request, _("Paused. What is opened may be finished; the reason stands on their page."))
    else:
        messages.warning(request, _("Say why, in words that the person reads. Nothing was changed."))
    return redirect("dashboard:annotators", slug)


@require_POST
def resume_rater(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, found = _pair(request, slug, rater)
    raters.resume(rater=found, by=actor.user, now=timezone.now())
    messages.success(request, _("They go on, and are watched from here anew."))
    return redirect("dashboard:annotators", slug)


@require_POST
def train_again(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, found = _pair(request, slug, rater)
    admission.train_again(rater_id=found.pk, by=actor.user, now=timezone.now())
    messages.success(request, _("Training comes before their next trace."))
    return redirect("dashboard:annotators", slug)


def _pair(request: HttpRequest, slug: str, rater: int) -> tuple[Membership, Rater]:
    actor = door.enter(request, slug, Action.PAUSE)
    return actor, get_object_or_404(Rater.objects.select_related("project"), project=actor.project, pk=rater)
