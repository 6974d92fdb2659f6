"""PRMs and generations of a project: what runs, what passed, whether choosing pays."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import audits, door, loop, page
from dashboard.audits import figure
from dashboard.forms_of_models import RegisterForm, RulesForm
from jobs import work
from labeling.texts import numbers
from people import roles
from people.models import Membership
from people.roles import Action
from prm import generations, registry, rules, scores, scoring
from prm.models import PRM, Generation


@require_safe
@never_cache
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, door.enter(request, slug, Action.READ))


@require_safe
@never_cache
def one(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.READ)
    prm = _prm(actor, version)
    told = prm.evaluation.get("figures", {})
    figures = [(label, figure(told[name])) for name, label in loop.FIGURES.items() if name in told]
    out, learnt = prm.audits.get("left_out", {}), prm.audits.get("audits", {}).get("contamination", {})
    domains = [
        (name, figure(told.get(loop.CLAIM)), figure(told.get("false_confidence")), figure(out.get(name)))
        for name, told in prm.evaluation.get("domains", {}).items()
    ]
    return page.show(
        request,
        actor,
        "dashboard/model.html",
        here="models",
        prm=prm,
        figures=figures,
        domains=domains,
        counts=prm.evaluation.get("counts", {}),
        audits=audits.audit_rows(prm),
        learnt=learnt,
        judges=audits.contamination(learnt),
        alarms=audits.alarms(prm.audits),
        may_claim_all=prm.audits.get("domains", {}).get("may_claim_all"),
        uses=prm.uses.order_by("-day", "purpose")[:30],
        may_train=roles.does(actor, Action.TRAIN),
    )


@require_safe
@never_cache
def progress(request: HttpRequest, slug: str) -> HttpResponse:
    """The fragment that a running generation is followed by."""
    actor = door.enter(request, slug, Action.READ)
    last = get_object_or_404(Generation.objects.filter(project=actor.project).order_by("-number")[:1])
    context = {
        "project": actor.project,
        "progress": loop.progress(last, timezone.now()),
        "may_train": roles.does(actor, Action.TRAIN),
    }
    return render(request, "dashboard/_generation.html", context)


@require_POST
def start(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.TRAIN)
    version = request.POST.get("candidate")
    candidate = _prm(actor, numbers.whole(version, digits=9)) if version else None
    try:
        generations.start(project=actor.project, by=actor.user, now=timezone.now(), candidate=candidate)
    except generations.AlreadyRunning as refused:
        return _page(request, actor, status=422, problem=str(refused))
    return redirect("dashboard:models", slug)


@require_POST
def stop(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.TRAIN)
    found = get_object_or_404(Generation, project=actor.project, number=number)
    try:
        generations.stop(generation=found, by=actor.user, now=timezone.now())
    except generations.NotRunning as refused:
        return _page(request, actor, status=422, problem=str(refused))
    messages.success(request, _("Generation %(n)d is stopped. What it had done so far is kept.") % {"n": number})
    return redirect("dashboard:models", slug)


@require_POST
def retry(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.TRAIN)
    found = get_object_or_404(Generation, project=actor.project, number=number)
    try:
        generations.retry(generation=found, by=actor.user, now=timezone.now())
    except work.NotRetryable:
        return _page(request, actor, status=422, problem=_("There is nothing to try again."))
    return redirect("dashboard:models", slug)


@require_POST
def make_current(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.TRAIN)
    registry.make_current(prm=_prm(actor, version), by=actor.user, now=timezone.now(), why="chosen by hand")
    messages.success(request, _("PRM %(n)d is current. The next batch is drawn by it.") % {"n": version})
    return redirect("dashboard:models", slug)


@require_POST
def roll_back(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.TRAIN)
    try:
        prm = registry.roll_back(project=actor.project, by=actor.user, now=timezone.now())
    except registry.NothingToRollBackTo as refused:
        return _page(request, actor, status=422, problem=str(refused))
    messages.success(request, _("PRM %(n)d is current again. Its scores are still there.") % {"n": prm.version})
    return redirect("dashboard:models", slug)


@require_POST
def register(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.TRAIN)
    form = RegisterForm(actor.project, request.POST)
    if not form.is_valid():
        return _page(request, actor, status=422, register_form=form)
    try:
        prm = registry.register(
            project=actor.project,
            identity=form.identity(),
            by=actor.user,
            now=timezone.now(),
            manifest=form.manifest,
        )
    except registry.NotRegistrable as refused:
        return _page(request, actor, status=422, register_form=form, problem=str(refused))
    messages.success(request, _("It is registered as PRM %(n)d. A generation judges it.") % {"n": prm.version})
    return redirect("dashboard:models", slug)


@require_POST
def change_rules(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.TRAIN)
    form = RulesForm(rules.of(actor.project), request.POST)
    if not form.is_valid():
        return _page(request, actor, status=422, rules_form=form)
    try:
        rules.change(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except rules.BadRule as refused:
        return _page(request, actor, status=422, rules_form=form, problem=str(refused))
    messages.success(request, _("The next batch is drawn by these rules."))
    return redirect("dashboard:models", slug)


@require_POST
def score(request: HttpRequest, slug: str) -> HttpResponse:
    """Score what the current PRM has not scored yet."""
    actor = door.enter(request, slug, Action.TRAIN)
    prm = registry.current(actor.project_id)
    if prm is None or not scoring.ask(prm=prm, by=actor.user, now=timezone.now()):
        return _page(request, actor, status=422, problem=_("There is nothing to score, or it is being scored."))
    messages.success(request, _("Scoring has begun. The page says how much is fresh."))
    return redirect("dashboard:models", slug)


def _prm(actor: Membership, version: int | None) -> PRM:
    found = PRM.objects.defer("weights").select_related("project", "registered_by", "made_current_by", "predecessor")
    return get_object_or_404(found, project=actor.project, version=version)


def _page(request: HttpRequest, actor: Membership, *, status: int = 200, **told: Any) -> HttpResponse:
    project, chosen = actor.project, rules.of(actor.project)
    running = generations.running(project)
    found, freshness = loop.payoff(project), scores.freshness_shown(project)
    return page.show(
        request,
        actor,
        "dashboard/models.html",
        here="models",
        status=status,
        tables=[found["chart"].table] if "chart" in found else [],
        freshness=freshness,
        rescoring=loop.rescoring(freshness.prm if freshness.n_stale else None, timezone.now()),
        timeline=loop.timeline(project),
        versions=loop.versions(project),
        progress=loop.progress(running, timezone.now()) if running else None,
        n_new=generations.n_new(project),
        next_number=(running.number if running else _last_number(actor)) + (0 if running else 1),
        payoff=found,
        reading=loop.reading(project),
        rules=chosen,
        may_train=roles.does(actor, Action.TRAIN),
        **{"register_form": RegisterForm(project), "rules_form": RulesForm(chosen, initial=vars(chosen)), **told},
    )


def _last_number(actor: Membership) -> int:
    last = Generation.objects.filter(project=actor.project).order_by("-number").values_list("number", flat=True)
    return last.first() or 0
