"""The traces of a project: finding them, reading one, saying what is known of it, taking it out."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, majority, render
from dashboard.forms import WithdrawTraceForm
from dashboard.gold import forms
from dashboard.gold.forms import MakeGoldForm
from dashboard.trace import page
from dashboard.traces import page as traces_page
from labeling import onboarding, queue, step_numbers
from labeling.models import Assignment, OptionPart, Trace
from labeling.quality.gold import InvalidGold
from labeling.quality.withdrawal import withdraw_traces
from people import roles
from people.models import Membership
from people.roles import Action
from prm import explanation


@require_safe
@never_cache
def show_traces(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    hits = traces_page.search_traces(actor.project, request.GET)
    form = traces_page.TraceSearchForm(request.GET)
    return render.project_page(
        request, actor, "dashboard/traces.html", here="traces", hits=hits, rows=hits.page, form=form
    )


@require_safe
@never_cache
def show_trace(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor, found = _load_trace(request, slug, trace, Action.READ)
    return _render_trace(request, actor, found)


@require_POST
def make_trace_gold(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor, found = _load_trace(request, slug, trace, Action.MAKE_GOLD)
    form = MakeGoldForm(request.POST, trace=found)
    if not form.is_valid():
        return _render_trace(request, actor, found, status=422, gold_form=form)
    try:
        onboarding.make_served_gold(trace=found, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except InvalidGold as refused:
        return _render_trace(request, actor, found, status=422, problem=str(refused))
    messages.success(request, _("The trace is gold now."))
    return redirect("dashboard:trace", slug, found.pk)


@require_POST
def withdraw_trace(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor, found = _load_trace(request, slug, trace, Action.BRING_IN)
    form = WithdrawTraceForm(request.POST)
    if not form.is_valid():
        return _render_trace(request, actor, found, status=422, problem=_("Say why the trace is withdrawn."))
    now, reason = timezone.now(), form.cleaned_data["reason"]
    withdraw_traces(project=actor.project, trace_ids=[found.pk], reason=reason, by=actor.user, now=now)
    messages.success(request, _("Nobody is given this trace any more. What is opened may be finished, and is kept."))
    return redirect("dashboard:trace", slug, found.pk)


@require_POST
def reclaim_from_annotator(request: HttpRequest, slug: str, assignment: int) -> HttpResponse:
    """Take a trace out of somebody's hands: it goes back to the queue."""
    actor = access.membership_or_404(request, slug, Action.PAUSE)
    found = get_object_or_404(Assignment, project=actor.project, pk=assignment)
    now = timezone.now()
    if queue.reclaim_assignment(assignment_id=found.pk, now=now, by=actor.user):
        messages.success(
            request,
            _("The trace went back to the queue. What was rated of it is kept; whoever has it open may submit it."),
        )
    else:
        messages.warning(request, _("It was in nobody’s hands any more."))
    return redirect("dashboard:trace", slug, found.trace_id)


# Anything else, SVG above all, may carry scripts: it is not shown.
_IMAGE_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}


@require_safe
def show_trace_image(request: HttpRequest, slug: str, part: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    images = OptionPart.objects.filter(
        option__step__trace__project=actor.project, kind="image", media_type__in=_IMAGE_TYPES
    )
    found = get_object_or_404(images, pk=part)
    return HttpResponse(found.data, content_type=found.media_type)


def _load_trace(request: HttpRequest, slug: str, trace: int, action: Action) -> tuple[Membership, Trace]:
    actor = access.membership_or_404(request, slug, action)
    traces = Trace.objects.select_related("problem", "source", "provenance")
    found = traces.filter(project=actor.project, pk=trace).first()
    if found is None:
        raise Http404
    return actor, found


def _render_trace(
    request: HttpRequest, actor: Membership, trace: Trace, *, status: int = 200, **told: Any
) -> HttpResponse:
    numbers = step_numbers.load_step_numbers(trace_ids=[trace.pk])
    standing = page.load_status(trace, numbers)
    read = page.load_trace_readings(trace, actor, numbers)
    told.setdefault("gold_form", MakeGoldForm(trace=trace, initial=forms.get_consensus_answer(standing.consensus)))
    if roles.membership_may(actor, Action.TRAIN):  # whoever rates must not see scores first
        told["why"] = explanation.explain_selection(trace, gold=standing.gold, entries=standing.entries)
    return render.project_page(
        request,
        actor,
        "dashboard/trace.html",
        here="traces",
        status=status,
        trace=trace,
        standing=standing,
        rungs=page.load_steps(trace, standing.consensus),
        readings=read,
        majority=majority.describe_majority(trace, read),
        history=page.load_history(trace, read, actor, numbers),
        may_make_gold=roles.membership_may(actor, Action.MAKE_GOLD),
        may_withdraw=roles.membership_may(actor, Action.BRING_IN) and trace.withdrawn_at is None,
        may_take_back=roles.membership_may(actor, Action.PAUSE),
        **told,
    )
