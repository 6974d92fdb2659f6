"""Generations and PRMs: start and follow a generation, register and choose a PRM, change selection rules."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import audits
from dashboard.access import membership_or_404
from dashboard.audits import build_prm_figure
from dashboard.generations import page
from dashboard.generations.forms import RegisterPRMForm, SelectionRulesForm
from dashboard.render import project_page
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
    return _render_generations(request, membership_or_404(request, slug, Action.READ))


@require_safe
@never_cache
def show_prm(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.READ)
    prm = _get_prm(actor, version)
    values = prm.evaluation.get("figures", {})
    figures = [(label, build_prm_figure(values[name])) for name, label in page.FIGURE_LABELS.items() if name in values]
    left_out, contamination = prm.audits.get("left_out", {}), prm.audits.get("audits", {}).get("contamination", {})
    domains = [
        (
            name,
            build_prm_figure(values.get(page.HEADLINE_FIGURE)),
            build_prm_figure(values.get("false_confidence")),
            build_prm_figure(left_out.get(name)),
        )
        for name, values in prm.evaluation.get("domains", {}).items()
    ]
    return project_page(
        request,
        actor,
        "dashboard/prm.html",
        here="generations",
        prm=prm,
        figures=figures,
        domains=domains,
        counts=prm.evaluation.get("counts", {}),
        audits=audits.build_audit_rows(prm),
        contamination=contamination,
        benchmarks=audits.list_contamination(contamination),
        alarms=audits.list_alarms(prm.audits),
        may_claim_all=prm.audits.get("domains", {}).get("may_claim_all"),
        uses=prm.uses.order_by("-day", "purpose")[:30],
        may_train=roles.membership_may(actor, Action.TRAIN),
    )


@require_safe
@never_cache
def show_generation_progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Render the progress panel. Once the generation has ended, make htmx reload the whole page."""
    actor = membership_or_404(request, slug, Action.READ)
    newest = get_object_or_404(Generation.objects.filter(project=actor.project).order_by("-number")[:1])
    progress = page.load_generation_progress(newest, timezone.now())
    context = {
        "project": actor.project,
        "progress": progress,
        "may_train": roles.membership_may(actor, Action.TRAIN),
    }
    headers = {} if progress.is_under_way else {"HX-Refresh": "true"}
    return HttpResponse(render_to_string("dashboard/generations/_progress.html", context, request), headers=headers)


@require_POST
def start_generation(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TRAIN)
    version = request.POST.get("candidate")
    candidate = _get_prm(actor, integers.parse_integer(version, digits=9)) if version else None
    try:
        generations.start_generation(project=actor.project, by=actor.user, now=timezone.now(), candidate=candidate)
    except generations.AlreadyRunning as error:
        return _render_generations(request, actor, status=422, problem=str(error))
    return redirect("dashboard:generations", slug)


@require_POST
def stop_generation(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TRAIN)
    generation = get_object_or_404(Generation, project=actor.project, number=number)
    try:
        generations.stop_generation(generation=generation, by=actor.user, now=timezone.now())
    except generations.NotRunning as error:
        return _render_generations(request, actor, status=422, problem=str(error))
    messages.success(request, _("Generation %(n)d stopped.") % {"n": number})
    return redirect("dashboard:generations", slug)


@require_POST
def retry_generation(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TRAIN)
    generation = get_object_or_404(Generation, project=actor.project, number=number)
    try:
        generations.retry_generation(generation=generation, by=actor.user, now=timezone.now())
    except control.JobNotRetryable:
        return _render_generations(
            request, actor, status=422, problem=_("No job of this generation has failed, so nothing can be retried.")
        )
    return redirect("dashboard:generations", slug)


@require_POST
def make_prm_current(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TRAIN)
    registry.make_current(prm=_get_prm(actor, version), by=actor.user, now=timezone.now(), why="chosen by hand")
    messages.success(request, _("PRM %(n)d is now current. It scores the next batch.") % {"n": version})
    return redirect("dashboard:generations", slug)


@require_POST
def roll_back_prm(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TRAIN)
    try:
        prm = registry.roll_back(project=actor.project, by=actor.user, now=timezone.now())
    except registry.NothingToRollBackTo as error:
        return _render_generations(request, actor, status=422, problem=str(error))
    messages.success(request, _("Rolled back to PRM %(n)d. Its scores are available again.") % {"n": prm.version})
    return redirect("dashboard:generations", slug)


@require_POST
def register_prm(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TRAIN)
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
    except registry.NotRegistrable as error:
        return _render_generations(request, actor, status=422, register_form=form, problem=str(error))
    messages.success(request, _("Registered as PRM %(n)d. Start a generation to evaluate it.") % {"n": prm.version})
    return redirect("dashboard:generations", slug)


@require_POST
def change_selection_rules(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TRAIN)
    form = SelectionRulesForm(loop_rules.load_loop_rules(actor.project), request.POST)
    if not form.is_valid():
        return _render_generations(request, actor, status=422, rules_form=form)
    try:
        loop_rules.change_loop_rules(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except loop_rules.InvalidLoopRule as error:
        return _render_generations(request, actor, status=422, rules_form=form, problem=str(error))
    messages.success(request, _("Saved. The next batch uses these rules."))
    return redirect("dashboard:generations", slug)


@require_POST
def score_stale_traces(request: HttpRequest, slug: str) -> HttpResponse:
    """Score the traces that the current PRM has not scored."""
    actor = membership_or_404(request, slug, Action.TRAIN)
    prm = registry.current_prm(actor.project_id)
    if prm is None or not scoring.request_scoring(prm=prm, by=actor.user, now=timezone.now()):
        return _render_generations(
            request, actor, status=422, problem=_("All traces are scored, or scoring is already running.")
        )
    messages.success(request, _("Scoring started."))
    return redirect("dashboard:generations", slug)


def _get_prm(actor: Membership, version: int | None) -> PRM:
    rows = PRM.objects.defer("weights").select_related("project", "registered_by", "made_current_by", "predecessor")
    return get_object_or_404(rows, project=actor.project, version=version)


def _render_generations(request: HttpRequest, actor: Membership, *, status: int = 200, **context: Any) -> HttpResponse:
    project, rules = actor.project, loop_rules.load_loop_rules(actor.project)
    running = generations.running_generation(project)
    payoff, freshness = page.load_payoff(project), scores.cached_freshness(project)
    return project_page(
        request,
        actor,
        "dashboard/generations.html",
        here="generations",
        status=status,
        tables=[payoff["chart"].table] if "chart" in payoff else [],
        freshness=freshness,
        rescoring=page.load_rescoring_progress(freshness.prm if freshness.n_stale else None, timezone.now()),
        timeline=page.load_timeline(project),
        versions=page.load_prm_versions(project),
        progress=page.load_generation_progress(running, timezone.now()) if running else None,
        n_new=generations.count_new_submissions(project),
        next_number=_find_last_number(actor) + 1,
        payoff=payoff,
        cost=page.load_reading_cost(project),
        rules=rules,
        may_train=roles.membership_may(actor, Action.TRAIN),
        **{
            "register_form": RegisterPRMForm(project),
            "rules_form": SelectionRulesForm(rules, initial=vars(rules)),
            **context,
        },
    )


def _find_last_number(actor: Membership) -> int:
    last = Generation.objects.filter(project=actor.project).order_by("-number").values_list("number", flat=True)
    return last.first() or 0
