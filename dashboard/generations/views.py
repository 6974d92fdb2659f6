"""PRMs and generations of a project: what runs, what passed, whether choosing pays."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, audits
from dashboard import render as dashboard_render
from dashboard.audits import build_prm_figure
from dashboard.generations import page
from dashboard.generations.forms import RegisterPRMForm, SelectionRulesForm
from formats import integers
from jobs import control
from people import roles
from people.models import Membership
from people.roles import Action
from prm import generations, loop_rules, registry, scores, scoring
from prm.models import PRM, Generation


@require_safe
@never_cache
def show_generations(request: HttpRequest, slug: str) -> HttpResponse:
    return _render_generations(request, access.membership_or_404(request, slug, Action.READ))


@require_safe
@never_cache
def show_prm(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    prm = _get_prm(actor, version)
    told = prm.evaluation.get("figures", {})
    figures = [(label, build_prm_figure(told[name])) for name, label in page.FIGURE_LABELS.items() if name in told]
    out, learnt = prm.audits.get("left_out", {}), prm.audits.get("audits", {}).get("contamination", {})
    domains = [
        (
            name,
            build_prm_figure(told.get(page.HEADLINE_FIGURE)),
            build_prm_figure(told.get("false_confidence")),
            build_prm_figure(out.get(name)),
        )
        for name, told in prm.evaluation.get("domains", {}).items()
    ]
    return dashboard_render.project_page(
        request,
        actor,
        "dashboard/prm.html",
        here="generations",
        prm=prm,
        figures=figures,
        domains=domains,
        counts=prm.evaluation.get("counts", {}),
        audits=audits.build_audit_rows(prm),
        learnt=learnt,
        judges=audits.list_contamination(learnt),
        alarms=audits.list_alarms(prm.audits),
        may_claim_all=prm.audits.get("domains", {}).get("may_claim_all"),
        uses=prm.uses.order_by("-day", "purpose")[:30],
        may_train=roles.membership_may(actor, Action.TRAIN),
    )


@require_safe
@never_cache
def show_generation_progress(request: HttpRequest, slug: str) -> HttpResponse:
    """The fragment that a running generation is followed by."""
    actor = access.membership_or_404(request, slug, Action.READ)
    last = get_object_or_404(Generation.objects.filter(project=actor.project).order_by("-number")[:1])
    context = {
        "project": actor.project,
        "progress": page.load_generation_progress(last, timezone.now()),
        "may_train": roles.membership_may(actor, Action.TRAIN),
    }
    return render(request, "dashboard/generations/_progress.html", context)


@require_POST
def start_generation(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TRAIN)
    version = request.POST.get("candidate")
    candidate = _get_prm(actor, integers.parse_integer(version, digits=9)) if version else None
    try:
        generations.start_generation(project=actor.project, by=actor.user, now=timezone.now(), candidate=candidate)
    except generations.AlreadyRunning as refused:
        return _render_generations(request, actor, status=422, problem=str(refused))
    return redirect("dashboard:generations", slug)


@require_POST
def stop_generation(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TRAIN)
    found = get_object_or_404(Generation, project=actor.project, number=number)
    try:
        generations.stop_generation(generation=found, by=actor.user, now=timezone.now())
    except generations.NotRunning as refused:
        return _render_generations(request, actor, status=422, problem=str(refused))
    messages.success(request, _("Generation %(n)d is stopped. What it had done so far is kept.") % {"n": number})
    return redirect("dashboard:generations", slug)


@require_POST
def retry_generation(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TRAIN)
    found = get_object_or_404(Generation, project=actor.project, number=number)
    try:
        generations.retry_generation(generation=found, by=actor.user, now=timezone.now())
    except control.JobNotRetryable:
        return _render_generations(request, actor, status=422, problem=_("There is nothing to try again."))
    return redirect("dashboard:generations", slug)


@require_POST
def make_prm_current(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TRAIN)
    registry.make_current(prm=_get_prm(actor, version), by=actor.user, now=timezone.now(), why="chosen by hand")
    messages.success(request, _("PRM %(n)d is current. The next batch is drawn by it.") % {"n": version})
    return redirect("dashboard:generations", slug)


@require_POST
def roll_back_prm(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TRAIN)
    try:
        prm = registry.roll_back(project=actor.project, by=actor.user, now=timezone.now())
    except registry.NothingToRollBackTo as refused:
        return _render_generations(request, actor, status=422, problem=str(refused))
    messages.success(request, _("PRM %(n)d is current again. Its scores are still there.") % {"n": prm.version})
    return redirect("dashboard:generations", slug)


@require_POST
def register_prm(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TRAIN)
    form = RegisterPRMForm(actor.project, request.POST)
    if not form.is_valid():
        return _render_generations(request, actor, status=422, register_form=form)
    try:
        prm = registry.register_prm(
            project=actor.project,
            identity=form.identity(),
            by=actor.user,
            now=timezone.now(),
            manifest=form.manifest,
        )
    except registry.NotRegistrable as refused:
        return _render_generations(request, actor, status=422, register_form=form, problem=str(refused))
    messages.success(request, _("It is registered as PRM %(n)d. A generation judges it.") % {"n": prm.version})
    return redirect("dashboard:generations", slug)


@require_POST
def change_selection_rules(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TRAIN)
    form = SelectionRulesForm(loop_rules.load_loop_rules(actor.project), request.POST)
    if not form.is_valid():
        return _render_generations(request, actor, status=422, rules_form=form)
    try:
        loop_rules.change_loop_rules(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except loop_rules.InvalidLoopRule as refused:
        return _render_generations(request, actor, status=422, rules_form=form, problem=str(refused))
    messages.success(request, _("The next batch is drawn by these rules."))
    return redirect("dashboard:generations", slug)


@require_POST
def score_stale_traces(request: HttpRequest, slug: str) -> HttpResponse:
    """Score what the current PRM has not scored yet."""
    actor = access.membership_or_404(request, slug, Action.TRAIN)
    prm = registry.current_prm(actor.project_id)
    if prm is None or not scoring.request_scoring(prm=prm, by=actor.user, now=timezone.now()):
        return _render_generations(
            request, actor, status=422, problem=_("There is nothing to score, or it is being scored.")
        )
    messages.success(request, _("Scoring has begun. The page says how much is fresh."))
    return redirect("dashboard:generations", slug)


def _get_prm(actor: Membership, version: int | None) -> PRM:
    found = PRM.objects.defer("weights").select_related("project", "registered_by", "made_current_by", "predecessor")
    return get_object_or_404(found, project=actor.project, version=version)


def _render_generations(request: HttpRequest, actor: Membership, *, status: int = 200, **told: Any) -> HttpResponse:
    project, chosen = actor.project, loop_rules.load_loop_rules(actor.project)
    running = generations.running_generation(project)
    found, freshness = page.load_payoff(project), scores.cached_freshness(project)
    return dashboard_render.project_page(
        request,
        actor,
        "dashboard/generations.html",
        here="generations",
        status=status,
        tables=[found["chart"].table] if "chart" in found else [],
        freshness=freshness,
        rescoring=page.load_rescoring_progress(freshness.prm if freshness.n_stale else None, timezone.now()),
        timeline=page.load_timeline(project),
        versions=page.load_prm_versions(project),
        progress=page.load_generation_progress(running, timezone.now()) if running else None,
        n_new=generations.count_new_submissions(project),
        next_number=(running.number if running else _find_last_number(actor)) + (0 if running else 1),
        payoff=found,
        reading=page.load_reading_cost(project),
        rules=chosen,
        may_train=roles.membership_may(actor, Action.TRAIN),
        **{
            "register_form": RegisterPRMForm(project),
            "rules_form": SelectionRulesForm(chosen, initial=vars(chosen)),
            **told,
        },
    )


def _find_last_number(actor: Membership) -> int:
    last = Generation.objects.filter(project=actor.project).order_by("-number").values_list("number", flat=True)
    return last.first() or 0
