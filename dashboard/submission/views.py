"""Looking at what somebody submitted, and asking them to look again."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, render
from dashboard.forms import CorrectionRequestForm
from dashboard.submission import page
from formats import integers
from labeling import assignments
from labeling.models import Assignment
from people import roles
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def show_submission(request: HttpRequest, slug: str, assignment: int) -> HttpResponse:
    actor, found = _load_assignment(request, slug, assignment, Action.READ)
    return _render_submission(request, actor, found)


@require_POST
def create_correction_request(request: HttpRequest, slug: str, assignment: int) -> HttpResponse:
    actor, found = _load_assignment(request, slug, assignment, Action.ADJUDICATE)
    form = CorrectionRequestForm(request.POST)
    if not form.is_valid():
        return _render_submission(request, actor, found, status=422, problem=_("Say what to look at again."))
    try:
        assignments.request_correction(assignment_id=found.pk, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except assignments.CorrectionRefused as refused:
        return _render_submission(request, actor, found, status=422, problem=str(refused))
    messages.success(request, _("Asked. It stands on the rater’s page; the submission counts until it is corrected."))
    return redirect("dashboard:submission", slug, found.pk)


def _load_assignment(request: HttpRequest, slug: str, assignment: int, action: Action) -> tuple[Membership, Assignment]:
    actor = access.membership_or_404(request, slug, action)
    rows = Assignment.objects.select_related("trace__problem", "rater__user", "guideline")
    return actor, get_object_or_404(rows, project=actor.project, pk=assignment)


def _render_submission(
    request: HttpRequest, actor: Membership, assignment: Assignment, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    found = page.load_submission(assignment, actor, integers.parse_integer(request.GET.get("revision"), digits=5))
    if found is None:
        raise Http404
    return render.project_page(
        request,
        actor,
        "dashboard/submission.html",
        here="traces",
        status=status,
        problem=problem,
        review=found,
        trace=assignment.trace,
        may_ask=roles.membership_may(actor, Action.ADJUDICATE),
    )
