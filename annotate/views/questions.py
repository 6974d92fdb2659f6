"""Annotators' questions to the leads about a step, and their disputes of known answers."""

from django import forms
from django.contrib import messages as flash
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.sessions import UserRequest
from annotate import training_feedback
from labeling.models import Assignment, Step
from people import conversations, member_messages
from people.models import Membership, MessageKind


class QuestionForm(forms.Form):
    text = forms.CharField(max_length=member_messages.MAX_LENGTH)
    step = forms.IntegerField(min_value=0, max_value=100_000, required=False)  # position

    def __init__(self, data: object, *, trace_id: int) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # a QueryDict
        self.trace_id = trace_id

    def clean_step(self) -> int | None:
        step: int | None = self.cleaned_data["step"]
        if step is not None and not Step.objects.filter(trace=self.trace_id, position=step).exists():
            raise forms.ValidationError(_("This trace has no step with that number. Choose another step."))
        return step


@require_safe
@never_cache
def show_questions(request: UserRequest, assignment: int) -> HttpResponse:
    """Render the annotator's conversations about a trace, for the panel beside it."""
    return _render_questions(request, _own_assignment(request, assignment))


@require_POST
def ask_leads(request: UserRequest, assignment: int) -> HttpResponse:
    """Send a question, and render the conversations with it."""
    row = _own_assignment(request, assignment)
    problem = _send(request, row, MessageKind.QUESTION)
    return _render_questions(request, row, problem=problem, status=422 if problem else 200)


@require_POST
def dispute_answer(request: UserRequest, assignment: int) -> HttpResponse:
    """Send a dispute of a known answer that the annotator has seen, and return to the answer."""
    row = _own_assignment(request, assignment)
    page = training_feedback.page_with_answer(row, timezone.now())
    if page is None:
        problem = _("Not sent: you can dispute an answer only after you have seen it. Submit the trace first.")
    else:
        problem = _send(request, row, MessageKind.DISPUTE)
    if problem:
        flash.warning(request, problem)
    else:
        flash.success(request, _("Sent to the leads. Their answer will appear here and on your home page."))
    return redirect(reverse(page or "annotate:home", args=[row.pk] if page else []))


def _own_assignment(request: UserRequest, assignment: int) -> Assignment:
    """Return a trace that is or was assigned to the user, in a project they still belong to, or raise 404."""
    own = Assignment.objects.filter(rater__user=request.user, rater__removed_at=None, opened_at__isnull=False)
    return get_object_or_404(own.select_related("trace", "project"), pk=assignment)


def _own_membership(request: UserRequest, row: Assignment) -> Membership:
    return get_object_or_404(Membership.objects.of(request.user), project=row.project_id)


def _send(request: UserRequest, row: Assignment, kind: MessageKind) -> str:
    """Send the text of the form. Return a message if it was not sent."""
    form = QuestionForm(request.POST, trace_id=row.trace_id)
    if not form.is_valid():
        return _("Not sent: choose a step in this trace and write up to %(n)d characters.") % {
            "n": member_messages.MAX_LENGTH
        }
    membership, now = _own_membership(request, row), timezone.now()
    try:
        member_messages.ask_leads(
            membership=membership, trace=row.trace, by=request.user, now=now, kind=kind, **form.cleaned_data
        )
    except member_messages.QuestionRefused as refusal:
        return str(refusal)
    return ""


def _render_questions(request: UserRequest, row: Assignment, *, problem: str = "", status: int = 200) -> HttpResponse:
    context = {
        "assignment": row,
        "conversations": conversations.list_conversations(row.trace, user_id=request.user.pk),
        "problem": problem,
    }
    return render(request, "annotate/questions.html", context, status=status)
