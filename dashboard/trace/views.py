"""One trace: showing it, marking it as gold, withdrawing it, reclaiming its assignments."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, majority, render, trace_steps
from dashboard.gold.forms import MakeGoldForm, get_consensus_answer
from dashboard.trace import page
from dashboard.trace.forms import WithdrawTraceForm
from labeling import onboarding, queue, step_numbers
from labeling.models import Assignment, OptionPart, Trace
from labeling.quality.gold import InvalidGold
from labeling.quality.withdrawal import withdraw_traces
from people import roles
from people.models import Membership
from people.roles import Action
from prm import explanation

# SVG and other types may carry scripts.
_IMAGE_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}


@require_safe
@never_cache
def show_trace(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor, row = _load_trace(request, slug, trace, Action.READ)
    return _render_trace(request, actor, row)


@require_POST
def make_trace_gold(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor, row = _load_trace(request, slug, trace, Action.MAKE_GOLD)
    form = MakeGoldForm(request.POST, trace=row)
    if not form.is_valid():
        return _render_trace(request, actor, row, status=422, gold_form=form)
    try:
        onboarding.make_served_gold(trace=row, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except InvalidGold as error:
        return _render_trace(request, actor, row, status=422, problem=str(error))
    messages.success(request, _("Marked as gold."))
    return redirect("dashboard:trace", slug, row.pk)


@require_POST
def withdraw_trace(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor, row = _load_trace(request, slug, trace, Action.BRING_IN)
    form = WithdrawTraceForm(request.POST)
    if not form.is_valid():
        return _render_trace(request, actor, row, status=422, problem=_("Give a reason to withdraw the trace."))
    now, reason = timezone.now(), form.cleaned_data["reason"]
    withdraw_traces(project=actor.project, trace_ids=[row.pk], reason=reason, by=actor.user, now=now)
    messages.success(
        request, _("Withdrawn. This trace will no longer be assigned; annotators who have it open can still submit it.")
    )
    return redirect("dashboard:trace", slug, row.pk)


@require_POST
def reclaim_from_annotator(request: HttpRequest, slug: str, assignment: int) -> HttpResponse:
    """Reclaim a trace from its annotator, so that the queue can assign it again."""
    actor = access.membership_or_404(request, slug, Action.PAUSE)
    row = get_object_or_404(Assignment, project=actor.project, pk=assignment)
    if queue.reclaim_assignment(assignment_id=row.pk, now=timezone.now(), by=actor.user):
        messages.success(
            request,
            _("Reclaimed. The trace is back in the queue; its ratings are kept, and the annotator can still submit."),
        )
    else:
        messages.warning(request, _("This assignment is no longer open. Nothing was changed."))
    return redirect("dashboard:trace", slug, row.trace_id)


@require_safe
def show_trace_image(request: HttpRequest, slug: str, part: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    images = OptionPart.objects.filter(
        option__step__trace__project=actor.project, kind="image", media_type__in=_IMAGE_TYPES
    )
    image = get_object_or_404(images, pk=part)
    return HttpResponse(image.data, content_type=image.media_type)


def _load_trace(request: HttpRequest, slug: str, trace: int, action: Action) -> tuple[Membership, Trace]:
    actor = access.membership_or_404(request, slug, action)
    row = (
        Trace.objects.select_related("problem", "source", "provenance").filter(project=actor.project, pk=trace).first()
    )
    if row is None:
        raise Http404
    return actor, row


def _render_trace(
    request: HttpRequest, actor: Membership, trace: Trace, *, status: int = 200, **context: Any
) -> HttpResponse:
    numbers = step_numbers.load_step_numbers(trace_ids=[trace.pk])
    trace_state = page.load_status(trace, numbers)
    readings = page.load_trace_readings(trace, actor, numbers)
    context.setdefault("gold_form", MakeGoldForm(trace=trace, initial=get_consensus_answer(trace_state.consensus)))
    if roles.membership_may(actor, Action.TRAIN):  # annotators must not see scores before they rate
        gold = [row for row, _accepted in trace_state.gold]
        context["why"] = explanation.explain_selection(trace, gold=gold, entries=trace_state.entries)
    return render.project_page(
        request,
        actor,
        "dashboard/trace.html",
        here="traces",
        status=status,
        trace=trace,
        trace_state=trace_state,
        steps=trace_steps.load_steps(trace, trace_state.consensus),
        readings=readings,
        majority=majority.describe_majority(trace, readings),
        history=page.load_history(trace, readings, actor, numbers),
        may_make_gold=roles.membership_may(actor, Action.MAKE_GOLD),
        may_withdraw=roles.membership_may(actor, Action.BRING_IN) and trace.withdrawn_at is None,
        may_reclaim=roles.membership_may(actor, Action.PAUSE),
        **context,
    )
