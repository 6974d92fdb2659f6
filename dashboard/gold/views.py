"""The gold of a project: reading it, correcting what counts as right, taking it out of use."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, render
from dashboard.gold import forms, page
from dashboard.gold.forms import KnownAnswerForm
from dashboard.screening_set import page as screening_set_page
from dashboard.trace import page as trace_page
from formats import integers
from labeling import onboarding
from labeling.models import Gold
from labeling.quality.gold import InvalidGold, correct_gold, retire_gold
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def show_gold(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.MAKE_GOLD)
    golds = page.load_gold(actor.project, request.GET)
    return render.project_page(
        request,
        actor,
        "dashboard/gold.html",
        here="gold",
        golds=golds,
        rows=golds.page,
        mix=onboarding.load_screening_mix(actor.project),
        hidden=screening_set_page.count_hidden_gold(actor.project),
    )


@require_safe
@never_cache
def show_screening_set(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.MAKE_GOLD)
    return _render_screening_set(request, actor)


@require_POST
def adopt_screening_set(request: HttpRequest, slug: str) -> HttpResponse:
    """What is ticked is the set; nothing else stays in it."""
    actor = access.membership_or_404(request, slug, Action.MAKE_GOLD)
    chosen = [
        number
        for told in request.POST.getlist("trace")
        if (number := integers.parse_integer(told, digits=18)) is not None
    ]
    try:
        taken = onboarding.replace_screening_set(
            project=actor.project, trace_ids=chosen, by=actor.user, now=timezone.now()
        )
    except InvalidGold as refused:
        return _render_screening_set(request, actor, status=422, problem=str(refused))
    told = _("The screening set has %(n)d traces now: %(new)d are new, %(left)d went out of it.")
    messages.success(request, told % {"n": taken.n, "new": taken.n_new, "left": taken.n_left})
    return redirect("dashboard:gold", slug)


def _render_screening_set(
    request: HttpRequest, actor: Membership, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    shown = screening_set_page.load_screening_set(actor.project, request.GET)
    return render.project_page(
        request, actor, "dashboard/screening_set.html", here="gold", status=status, shown=shown, problem=problem
    )


@require_safe
@never_cache
def show_gold_trace(request: HttpRequest, slug: str, gold: int) -> HttpResponse:
    actor, found = _load_gold_trace(request, slug, gold)
    return _render_gold_trace(
        request, actor, found, form=KnownAnswerForm(trace=found.trace, initial=forms.get_initial_answer(found))
    )


@require_POST
def correct_gold_trace(request: HttpRequest, slug: str, gold: int) -> HttpResponse:
    actor, found = _load_gold_trace(request, slug, gold)
    form = KnownAnswerForm(request.POST, trace=found.trace)
    if not form.is_valid():
        return _render_gold_trace(request, actor, found, form=form, status=422)
    try:
        n = correct_gold(gold=found, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except InvalidGold as refused:
        return _render_gold_trace(request, actor, found, form=form, problem=str(refused), status=422)
    told = ngettext(
        "Corrected. %(n)d answer is judged otherwise now.", "Corrected. %(n)d answers are judged otherwise now.", n
    )
    messages.success(request, told % {"n": n})
    return redirect("dashboard:gold_trace", slug, found.pk)


@require_POST
def retire_gold_trace(request: HttpRequest, slug: str, gold: int) -> HttpResponse:
    actor, found = _load_gold_trace(request, slug, gold)
    if retire_gold(gold=found, by=actor.user, now=timezone.now()):
        messages.success(request, _("Retired: nobody is given it as gold any more. Its answers stay."))
    else:
        messages.warning(request, _("It was retired already."))
    return redirect("dashboard:gold_trace", slug, found.pk)


def _load_gold_trace(request: HttpRequest, slug: str, gold: int) -> tuple[Membership, Gold]:
    actor = access.membership_or_404(request, slug, Action.MAKE_GOLD)
    return actor, get_object_or_404(page.select_gold(actor.project), pk=gold)


def _render_gold_trace(
    request: HttpRequest, actor: Membership, gold: Gold, *, status: int = 200, **told: Any
) -> HttpResponse:
    row, rungs = page.build_gold_rows([gold])[0], trace_page.load_steps(gold.trace)
    return render.project_page(
        request, actor, "dashboard/gold_trace.html", here="gold", status=status, row=row, rungs=rungs, **told
    )
