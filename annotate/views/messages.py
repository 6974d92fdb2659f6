"""Messages from leads: the list, the notices on the work page, and one-line replies."""

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
from annotate import todo
from labeling.models import Assignment, Rater
from labeling.models.assignment import AssignmentPurpose
from people import member_messages, roles
from people.models import MemberMessage

MAX_SHOWN = 100


class MessageAnswerForm(forms.Form):
    answer = forms.CharField(max_length=500)


@require_safe
@never_cache
def list_messages(request: UserRequest) -> HttpResponse:
    """List the latest messages, read and unread."""
    rows = MemberMessage.objects.filter(membership__user=request.user).select_related(
        "written_by", "membership__project"
    )
    return render(request, "annotate/messages.html", {"messages_shown": rows.order_by("-pk")[:MAX_SHOWN]})


@require_safe
@never_cache
def show_unread(request: UserRequest, slug: str) -> HttpResponse:
    """Render the notices above a trace; the work page reloads them with each new trace."""
    user = request.user
    project = get_object_or_404(roles.visible_projects(user), slug=slug)
    context = {
        "asked": todo.list_asked_assignments(Rater.objects.filter(project=project, user=user).first()),
        "reopened_requests": todo.list_reopened_requests(user, slug),
        "reclaimed": todo.list_reclaimed(user, slug),
        "message": MemberMessage.objects.unread_in(project, user),
    }
    return render(request, "annotate/_unread.html", context)


@require_POST
def mark_read(request: UserRequest, message: int) -> HttpResponse:
    member_messages.mark_read(message=_own_message(request, message), by=request.user, now=timezone.now())
    return redirect("annotate:home")


@require_POST
def answer_message(request: UserRequest, message: int) -> HttpResponse:
    row, form = _own_message(request, message), MessageAnswerForm(request.POST)
    if not form.is_valid():
        flash.warning(request, _("Not sent: write a one-line reply of up to 500 characters."))
    elif member_messages.answer_message(
        message=row, text=form.cleaned_data["answer"], by=request.user, now=timezone.now()
    ):
        flash.success(request, _("Reply sent."))
    else:
        flash.warning(request, _("You’ve already replied to this message."))
    return redirect("annotate:home")


@require_safe
def show_trace(request: UserRequest, message: int) -> HttpResponse:
    """Go to the user's own page of the trace that a message is about."""
    row = _own_message(request, message)
    own = Assignment.objects.filter(rater__user=request.user, trace=row.trace_id, opened_at__isnull=False)
    assignment = get_object_or_404(own.select_related("project").order_by("-pk")[:1])
    if assignment.submitted_revision and assignment.purpose == AssignmentPurpose.TRAINING:
        return redirect("annotate:lesson", assignment.pk)
    if assignment.submitted_revision:
        return redirect("annotate:submitted_one", assignment.pk)
    return redirect(f"{reverse('annotate:work', args=[assignment.project.slug])}?assignment={assignment.pk}")


def _own_message(request: UserRequest, message: int) -> MemberMessage:
    """Return the user's own message, in a project they still belong to, or raise 404."""
    own = MemberMessage.objects.filter(membership__user=request.user, membership__left_at=None)
    return get_object_or_404(own.select_related("membership"), pk=message)
