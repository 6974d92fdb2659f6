"""The traces of a project: finding them, reading one, saying what is known of it, taking it out."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import door, gold_forms, majority, page, reading, search
from dashboard.forms import ReasonForm
from dashboard.gold_forms import GoldForm
from labeling import admission, numbering, quality, queue
from labeling.models import Assignment, Part, Trace
from people import roles
from people.models import Membership
from people.roles import Action
from prm import explaining


@require_safe
@never_cache
def find(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.READ)
    hits = search.find(actor.project, request.GET)
    form = search.SearchForm(request.GET)
    return page.show(request, actor, "dashboard/traces.html", here="traces", hits=hits, rows=hits.page, form=form)


@require_safe
@never_cache
def one(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor, found = _pair(request, slug, trace, Action.READ)
    return _page(request, actor, found)


@require_POST
def make_gold(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor, found = _pair(request, slug, trace, Action.MAKE_GOLD)
    form = GoldForm(request.POST, trace=found)
    if not form.is_valid():
        return _page(request, actor, found, status=422, gold_form=form)
    try:
        admission.make_gold(trace=found, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except quality.NotKnowable as refused:
        return _page(request, actor, found, status=422, problem=str(refused))
    messages.success(request, _("The trace is gold now."))
    return redirect("dashboard:trace", slug, found.pk)


@require_POST
def withdraw(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor, found = _pair(request, slug, trace, Action.BRING_IN)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _page(request, actor, found, status=422, problem=_("Say why the trace is withdrawn."))
    now, reason = timezone.now(), form.cleaned_data["reason"]
    quality.withdraw(project=actor.project, trace_ids=[found.pk], reason=reason, by=actor.user, now=now)
    messages.success(request, _("Nobody is given this trace any more. What is opened may be finished, and is kept."))
    return redirect("dashboard:trace", slug, found.pk)


@require_POST
def take_back(request: HttpRequest, slug: str, assignment: int) -> HttpResponse:
    """Take a trace out of somebody's hands: it goes back to the queue."""
    actor = door.enter(request, slug, Action.PAUSE)
    found = get_object_or_404(Assignment, project=actor.project, pk=assignment)
    now = timezone.now()
    if queue.take_back(assignment_id=found.pk, now=now, by=actor.user):
        messages.success(
            request,
            _("The trace went back to the queue. What was rated of it is kept; whoever has it open may submit it."),
        )
    else:
        messages.warning(request, _("It was in nobody’s hands any more."))
    return redirect("dashboard:trace", slug, found.trace_id)


# Anything else, SVG above all, may carry scripts: it is not shown.
_SHOWN = {"image/png", "image/jpeg", "image/gif", "image/webp"}


@require_safe
def image(request: HttpRequest, slug: str, part: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.READ)
    images = Part.objects.filter(option__step__trace__project=actor.project, kind="image", media_type__in=_SHOWN)
    found = get_object_or_404(images, pk=part)
    return HttpResponse(found.data, content_type=found.media_type)


def _pair(request: HttpRequest, slug: str, trace: int, action: Action) -> tuple[Membership, Trace]:
    actor = door.enter(request, slug, action)
    traces = Trace.objects.select_related("problem", "source", "provenance")
    found = traces.filter(project=actor.project, pk=trace).first()
    if found is None:
        raise Http404
    return actor, found


def _page(request: HttpRequest, actor: Membership, trace: Trace, *, status: int = 200, **told: Any) -> HttpResponse:
    numbers = numbering.of(trace_ids=[trace.pk])
    standing = reading.standing(trace, numbers)
    read = reading.readings(trace, actor, numbers)
    told.setdefault("gold_form", GoldForm(trace=trace, initial=gold_forms.agreed(standing.consensus)))
    if roles.does(actor, Action.TRAIN):  # whoever rates must not see scores first
        told["why"] = explaining.why(trace, gold=standing.gold, entries=standing.entries)
    return page.show(
        request,
        actor,
        "dashboard/trace.html",
        here="traces",
        status=status,
        trace=trace,
        standing=standing,
        rungs=reading.rungs(trace, standing.consensus),
        readings=read,
        majority=majority.told(trace, read),
        history=reading.history(trace, read, actor, numbers),
        may_make_gold=roles.does(actor, Action.MAKE_GOLD),
        may_withdraw=roles.does(actor, Action.BRING_IN) and trace.withdrawn_at is None,
        may_take_back=roles.does(actor, Action.PAUSE),
        **told,
    )
