"""Adjudication: a reviewer decides where annotators disagree."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, render
from dashboard.adjudication import page
from dashboard.adjudication.forms import DecisionForm, SendBackForm
from labeling.models import Settlement
from labeling.projects.guidelines import rendering
from labeling.quality import resolution_reasons
from labeling.quality.adjudication import CannotDecide, decide_trace, list_contested, send_back_trace
from people import roles
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def show_adjudication(request: HttpRequest, slug: str, trace: int | None = None) -> HttpResponse:
    """Show the given trace, or the one that has waited longest."""
    actor = access.membership_or_404(request, slug, Action.ADJUDICATE)
    if trace is None:
        return _render_adjudication(request, actor, list_contested(project_id=actor.project_id).first())
    return _render_adjudication(request, actor, get_object_or_404(_select_settlements(actor), pk=trace))


@require_POST
def decide_case(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.ADJUDICATE)
    settlement = get_object_or_404(_select_settlements(actor), pk=trace)
    form = DecisionForm(request.POST, trace=settlement.trace)
    if not form.is_valid():
        return _render_adjudication(request, actor, settlement, form=form, status=422)
    try:
        decide_trace(trace_id=trace, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except CannotDecide as error:
        return _render_refusal(request, actor, trace, error)
    messages.success(request, _("Decided: %(decision)s.") % {"decision": form.describe_decision()})
    return redirect("dashboard:adjudication", slug)


@require_POST
def send_case_back(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.ADJUDICATE)
    settlement = get_object_or_404(_select_settlements(actor), pk=trace)
    form = SendBackForm(request.POST)
    if not form.is_valid():
        return _render_adjudication(request, actor, settlement, form=form, status=422)
    try:
        send_back_trace(trace_id=trace, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except CannotDecide as error:
        return _render_refusal(request, actor, trace, error)
    messages.success(request, _("Sent back. One more annotator will label it."))
    return redirect("dashboard:adjudication", slug)


def _render_refusal(request: HttpRequest, actor: Membership, trace: int, error: CannotDecide) -> HttpResponse:
    """Show the current state of the trace: another reviewer may have decided it."""
    settlement = get_object_or_404(_select_settlements(actor), pk=trace)
    return _render_adjudication(request, actor, settlement, problem=str(error), status=422)


def _select_settlements(actor: Membership) -> QuerySet[Settlement]:
    return Settlement.objects.filter(project=actor.project).select_related("trace__problem")


def _render_adjudication(
    request: HttpRequest,
    actor: Membership,
    settlement: Settlement | None,
    *,
    form: DecisionForm | SendBackForm | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    with_names = request.GET.get("names") == "1" and roles.membership_may(actor, Action.INVITE)
    queue = list(list_contested(project_id=actor.project_id)[: page.MAX_QUEUED + 1])
    return render.project_page(
        request,
        actor,
        "dashboard/adjudication.html",
        here="adjudication",
        status=status,
        queue=queue[: page.MAX_QUEUED],
        has_more=len(queue) > page.MAX_QUEUED,
        case=page.load_case(settlement, actor, with_names=with_names) if settlement else None,
        guideline=rendering.to_html(actor.project.guideline.body) if actor.project.guideline else "",
        why=resolution_reasons.describe_resolution_reason(settlement.reason) if settlement else "",
        form=form,
        problem=problem,
        with_names=with_names,
        may_see_names=roles.membership_may(actor, Action.INVITE),
    )
