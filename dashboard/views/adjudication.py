"""Deciding where raters differ."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import deciding, door, page
from dashboard.forms import DecisionForm, NoteForm
from labeling import quality
from labeling.guidelines import rendering
from labeling.models import Settlement
from labeling.quality import reasons
from people import roles
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def adjudicate(request: HttpRequest, slug: str, trace: int | None = None) -> HttpResponse:
    """The trace that has waited longest, or the one that was asked for."""
    actor = door.enter(request, slug, Action.ADJUDICATE)
    found = deciding.waiting(actor.project.pk)
    settlement = get_object_or_404(_settlements(actor), pk=trace) if trace else found.first()
    return _page(request, actor, settlement)


@require_POST
def decide(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.ADJUDICATE)
    settlement = get_object_or_404(_settlements(actor), pk=trace)
    form = DecisionForm(request.POST, trace=settlement.trace)
    if not form.is_valid():
        return _page(request, actor, settlement, form=form, status=422)
    try:
        quality.decide(trace_id=trace, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except quality.CannotDecide as refused:
        return _refused(request, actor, trace, refused)
    messages.success(request, _("Decided: %(what)s.") % {"what": form.told()})
    return redirect("dashboard:adjudicate", slug)


@require_POST
def send_back(request: HttpRequest, slug: str, trace: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.ADJUDICATE)
    settlement = get_object_or_404(_settlements(actor), pk=trace)
    form = NoteForm(request.POST)
    if not form.is_valid():
        return _page(request, actor, settlement, form=form, status=422)
    try:
        quality.send_back(trace_id=trace, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except quality.CannotDecide as refused:
        return _refused(request, actor, trace, refused)
    messages.success(request, _("Sent back: one more person will read it."))
    return redirect("dashboard:adjudicate", slug)


def _refused(request: HttpRequest, actor: Membership, trace: int, refused: quality.CannotDecide) -> HttpResponse:
    """The trace as it stands now: somebody else may have decided it meanwhile."""
    settlement = get_object_or_404(_settlements(actor), pk=trace)
    return _page(request, actor, settlement, problem=str(refused), status=422)


def _settlements(actor: Membership) -> QuerySet[Settlement]:
    return Settlement.objects.filter(project=actor.project).select_related("trace__problem")


def _page(
    request: HttpRequest,
    actor: Membership,
    settlement: Settlement | None,
    *,
    form: DecisionForm | NoteForm | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    with_names = request.GET.get("names") == "1" and roles.does(actor, Action.INVITE)
    queue = list(deciding.waiting(actor.project.pk)[: deciding.QUEUED + 1])
    return page.show(
        request,
        actor,
        "dashboard/adjudicate.html",
        here="adjudicate",
        status=status,
        queue=queue[: deciding.QUEUED],
        has_more=len(queue) > deciding.QUEUED,
        case=deciding.case(settlement, actor, with_names=with_names) if settlement else None,
        guideline=rendering.to_html(actor.project.guideline.body) if actor.project.guideline else "",
        why=reasons.why(settlement.reason) if settlement else "",
        form=form,
        problem=problem,
        with_names=with_names,
        may_see_names=roles.does(actor, Action.INVITE),
    )
