"""Looking at what somebody submitted, and asking them to look again."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import door, page, reviewing
from dashboard.forms import CorrectionForm
from labeling import judging
from labeling.models import Assignment
from labeling.texts import numbers
from people import roles
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def review(request: HttpRequest, slug: str, assignment: int) -> HttpResponse:
    actor, found = _pair(request, slug, assignment, Action.READ)
    return _page(request, actor, found)


@require_POST
def ask_correction(request: HttpRequest, slug: str, assignment: int) -> HttpResponse:
    actor, found = _pair(request, slug, assignment, Action.ADJUDICATE)
    form = CorrectionForm(request.POST)
    if not form.is_valid():
        return _page(request, actor, found, status=422, problem=_("Say what to look at again."))
    try:
        judging.ask_correction(assignment_id=found.pk, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except judging.CannotReopen as refused:
        return _page(request, actor, found, status=422, problem=str(refused))
    messages.success(request, _("Asked. It stands on the rater’s page; the submission counts until it is corrected."))
    return redirect("dashboard:review", slug, found.pk)


def _pair(request: HttpRequest, slug: str, assignment: int, action: Action) -> tuple[Membership, Assignment]:
    actor = door.enter(request, slug, action)
    rows = Assignment.objects.select_related("trace__problem", "rater__user", "guideline")
    return actor, get_object_or_404(rows, project=actor.project, pk=assignment)


def _page(
    request: HttpRequest, actor: Membership, assignment: Assignment, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    found = reviewing.of(assignment, actor, numbers.whole(request.GET.get("revision"), digits=5))
    if found is None:
        raise Http404
    return page.show(
        request,
        actor,
        "dashboard/review.html",
        here="traces",
        status=status,
        problem=problem,
        review=found,
        trace=assignment.trace,
        may_ask=roles.does(actor, Action.ADJUDICATE),
    )
