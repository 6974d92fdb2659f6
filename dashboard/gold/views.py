"""The gold of a project: listing, correcting and retiring it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, render, trace_steps
from dashboard.gold import page
from dashboard.gold.forms import KnownAnswerForm, get_initial_answer
from dashboard.screening_set.page import count_hidden_gold
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
        hidden=count_hidden_gold(actor.project),
    )


@require_safe
@never_cache
def show_gold_trace(request: HttpRequest, slug: str, gold: int) -> HttpResponse:
    actor, row = _load_gold_trace(request, slug, gold)
    return _render_gold_trace(
        request, actor, row, form=KnownAnswerForm(trace=row.trace, initial=get_initial_answer(row))
    )


@require_POST
def correct_gold_trace(request: HttpRequest, slug: str, gold: int) -> HttpResponse:
    actor, row = _load_gold_trace(request, slug, gold)
    form = KnownAnswerForm(request.POST, trace=row.trace)
    if not form.is_valid():
        return _render_gold_trace(request, actor, row, form=form, status=422)
    try:
        n = correct_gold(gold=row, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except InvalidGold as error:
        return _render_gold_trace(request, actor, row, form=form, problem=str(error), status=422)
    text = ngettext("Saved. The verdict of %(n)d answer changed.", "Saved. The verdicts of %(n)d answers changed.", n)
    messages.success(request, text % {"n": n})
    return redirect("dashboard:gold_trace", slug, row.pk)


@require_POST
def retire_gold_trace(request: HttpRequest, slug: str, gold: int) -> HttpResponse:
    actor, row = _load_gold_trace(request, slug, gold)
    if retire_gold(gold=row, by=actor.user, now=timezone.now()):
        messages.success(request, _("Retired. It will no longer be assigned as gold; its answers are kept."))
    else:
        messages.warning(request, _("This gold trace was already retired."))
    return redirect("dashboard:gold_trace", slug, row.pk)


def _load_gold_trace(request: HttpRequest, slug: str, gold: int) -> tuple[Membership, Gold]:
    actor = access.membership_or_404(request, slug, Action.MAKE_GOLD)
    return actor, get_object_or_404(page.select_gold(actor.project), pk=gold)


def _render_gold_trace(
    request: HttpRequest, actor: Membership, gold: Gold, *, status: int = 200, **context: Any
) -> HttpResponse:
    return render.project_page(
        request,
        actor,
        "dashboard/gold_trace.html",
        here="gold",
        status=status,
        row=page.build_gold_rows([gold])[0],
        steps=trace_steps.load_steps(gold.trace),
        **context,
    )
