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

from dashboard import door, gold_forms, gold_page, page, reading, screening_page
from dashboard.gold_forms import KnownForm
from labeling import admission, quality
from labeling.models import Gold
from labeling.texts import numbers
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def listed(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.MAKE_GOLD)
    golds = gold_page.of(actor.project, request.GET)
    return page.show(
        request,
        actor,
        "dashboard/gold.html",
        here="gold",
        golds=golds,
        rows=golds.page,
        mix=admission.of_screening(actor.project),
        hidden=screening_page.hidden(actor.project),
    )


@require_safe
@never_cache
def screening_set(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.MAKE_GOLD)
    return _proposal(request, actor)


@require_POST
def take_screening_set(request: HttpRequest, slug: str) -> HttpResponse:
    """What is ticked is the set; nothing else stays in it."""
    actor = door.enter(request, slug, Action.MAKE_GOLD)
    chosen = [
        number for told in request.POST.getlist("trace") if (number := numbers.whole(told, digits=18)) is not None
    ]
    try:
        taken = admission.take(project=actor.project, trace_ids=chosen, by=actor.user, now=timezone.now())
    except quality.NotKnowable as refused:
        return _proposal(request, actor, status=422, problem=str(refused))
    told = _("The screening set has %(n)d traces now: %(new)d are new, %(left)d went out of it.")
    messages.success(request, told % {"n": taken.n, "new": taken.n_new, "left": taken.n_left})
    return redirect("dashboard:gold", slug)


def _proposal(request: HttpRequest, actor: Membership, *, status: int = 200, problem: str = "") -> HttpResponse:
    shown = screening_page.of(actor.project, request.GET)
    return page.show(
        request, actor, "dashboard/screening_set.html", here="gold", status=status, shown=shown, problem=problem
    )


@require_safe
@never_cache
def one(request: HttpRequest, slug: str, gold: int) -> HttpResponse:
    actor, found = _pair(request, slug, gold)
    return _page(request, actor, found, form=KnownForm(trace=found.trace, initial=gold_forms.initial(found)))


@require_POST
def correct(request: HttpRequest, slug: str, gold: int) -> HttpResponse:
    actor, found = _pair(request, slug, gold)
    form = KnownForm(request.POST, trace=found.trace)
    if not form.is_valid():
        return _page(request, actor, found, form=form, status=422)
    try:
        n = quality.correct_gold(gold=found, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except quality.NotKnowable as refused:
        return _page(request, actor, found, form=form, problem=str(refused), status=422)
    told = ngettext(
        "Corrected. %(n)d answer is judged otherwise now.", "Corrected. %(n)d answers are judged otherwise now.", n
    )
    messages.success(request, told % {"n": n})
    return redirect("dashboard:gold_one", slug, found.pk)


@require_POST
def retire(request: HttpRequest, slug: str, gold: int) -> HttpResponse:
    actor, found = _pair(request, slug, gold)
    if quality.retire_gold(gold=found, by=actor.user, now=timezone.now()):
        messages.success(request, _("Retired: nobody is given it as gold any more. Its answers stay."))
    else:
        messages.warning(request, _("It was retired already."))
    return redirect("dashboard:gold_one", slug, found.pk)


def _pair(request: HttpRequest, slug: str, gold: int) -> tuple[Membership, Gold]:
    actor = door.enter(request, slug, Action.MAKE_GOLD)
    return actor, get_object_or_404(gold_page.kept(actor.project), pk=gold)


def _page(request: HttpRequest, actor: Membership, gold: Gold, *, status: int = 200, **told: Any) -> HttpResponse:
    row, rungs = gold_page.rows([gold])[0], reading.rungs(gold.trace)
    return page.show(
        request, actor, "dashboard/gold_one.html", here="gold", status=status, row=row, rungs=rungs, **told
    )
