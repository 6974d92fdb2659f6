"""One submission: showing it, and requesting a correction from its annotator."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, render
from dashboard.submission import page
from dashboard.submission.forms import CorrectionRequestForm
from formats import integers
from labeling import assignments
from labeling.models import Assignment
from people import roles
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def show_submission(request: HttpRequest, slug: str, assignment: int) -> HttpResponse:
    actor, row = _load_assignment(request, slug, assignment, Action.READ)
    return _render_submission(request, actor, row)


@require_POST
def create_correction_request(request: HttpRequest, slug: str, assignment: int) -> HttpResponse:
    actor, row = _load_assignment(request, slug, assignment, Action.ADJUDICATE)
    form = CorrectionRequestForm(request.POST)
    if not form.is_valid():
        return _render_submission(request, actor, row, status=422, problem=_("Write what the annotator should check."))
    try:
        assignments.request_correction(assignment_id=row.pk, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except assignments.CorrectionRefused as error:
        return _render_submission(request, actor, row, status=422, problem=str(error))
    messages.success(
        request, _("Correction requested. The annotator sees your note; the submission counts until they correct it.")
    )
    return redirect("dashboard:submission", slug, row.pk)


def _load_assignment(request: HttpRequest, slug: str, assignment: int, action: Action) -> tuple[Membership, Assignment]:
    actor = access.membership_or_404(request, slug, action)
    rows = Assignment.objects.select_related("trace__problem", "rater__user", "guideline")
    return actor, get_object_or_404(rows, project=actor.project, pk=assignment)


def _render_submission(
    request: HttpRequest, actor: Membership, assignment: Assignment, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    revision = integers.parse_integer(request.GET.get("revision"), digits=5)
    submission_page = page.load_submission(assignment, actor, revision)
    if submission_page is None:
        raise Http404
    return render.project_page(
        request,
        actor,
        "dashboard/submission.html",
        here="traces",
        status=status,
        problem=problem,
        page=submission_page,
        trace=assignment.trace,
        may_request_correction=roles.membership_may(actor, Action.ADJUDICATE),
    )
