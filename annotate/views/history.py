"""The pages of the user's submissions, and the start of a correction."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.sessions import UserRequest
from annotate import history, todo, training_feedback
from formats import integers
from labeling import assignments
from labeling.models import Assignment
from labeling.projects import trace_questions


@require_safe
def show_history(request: UserRequest) -> HttpResponse:
    key = integers.parse_integer(request.GET.get("before"))
    page = history.load_page(request.user, now=timezone.now(), before=key)
    return render(request, "annotate/history.html", {"page": page, "is_first": key is None})


@require_safe
def show_submitted_trace(request: UserRequest, assignment: int) -> HttpResponse:
    row = _own_submitted_assignment(request, assignment)
    context = {
        "entry": history.build_entries([row], timezone.now())[0],
        "lines": history.list_options(row),
        "answers": trace_questions.load_named_answers(row.project, {row.pk: row.submitted_revision})[row.pk],
        "project": row.project,
        "has_answer": training_feedback.page_with_answer(row, timezone.now()) == "annotate:retired_answer",
        "correction_request": todo.find_correction_request(row.pk, request.user),
    }
    return render(request, "annotate/submitted_trace.html", context)


@require_POST
def start_correction(request: UserRequest, assignment: int) -> HttpResponse:
    row = _own_submitted_assignment(request, assignment)
    try:
        assignments.reopen_submission(assignment_id=row.pk, rater_id=row.rater_id, now=timezone.now(), by=request.user)
    except assignments.CorrectionRefused as refusal:
        messages.warning(request, str(refusal))
        return redirect("annotate:submitted_one", row.pk)
    return redirect(f"{reverse('annotate:work', args=[row.project.slug])}?assignment={row.pk}")


def _own_submitted_assignment(request: UserRequest, assignment: int) -> Assignment:
    rows = history.own_assignments(request.user).filter(submitted_revision__gte=1)
    return get_object_or_404(rows.select_related("trace__problem", "project", "rater"), pk=assignment)
