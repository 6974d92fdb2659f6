"""What leads wrote to a person: read at home or beside the work, and answered with one line."""

from typing import cast

from django import forms
from django.contrib import messages as said
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import correction_notes, reclaim_notices
from people import member_messages, roles
from people.models import MemberMessage

MAX_SHOWN = 100


class MessageAnswerForm(forms.Form):
    answer = forms.CharField(max_length=500)


@require_safe
@never_cache
def list_messages(request: HttpRequest) -> HttpResponse:
    """The latest ones, read or not."""
    mine = MemberMessage.objects.filter(membership__user=_current_user(request)).select_related(
        "written_by", "membership__project"
    )
    return render(request, "annotate/messages.html", {"messages_shown": mine.order_by("-pk")[:MAX_SHOWN]})


@require_safe
@never_cache
def show_unread(request: HttpRequest, slug: str) -> HttpResponse:
    """What the work page shows above a trace, and asks for again with each next one."""
    project = get_object_or_404(roles.visible_projects(_current_user(request)), slug=slug)
    told = {
        "asked": correction_notes.list_in_project(_current_user(request), slug),
        "ended": reclaim_notices.list_reclaimed(_current_user(request), slug),
        "message": MemberMessage.objects.unread_in(project, _current_user(request)),
    }
    return render(request, "annotate/_unread.html", told)


@require_POST
def mark_read(request: HttpRequest, message: int) -> HttpResponse:
    member_messages.mark_read(message=_own_message(request, message), by=_current_user(request), now=timezone.now())
    return redirect("annotate:home")


@require_POST
def answer_message(request: HttpRequest, message: int) -> HttpResponse:
    mine, form = _own_message(request, message), MessageAnswerForm(request.POST)
    if not form.is_valid():
        said.warning(request, _("An answer is one line of up to 500 characters. Nothing was sent."))
    elif member_messages.answer_message(
        message=mine, text=form.cleaned_data["answer"], by=_current_user(request), now=timezone.now()
    ):
        said.success(request, _("Your answer is sent."))
    else:
        said.warning(request, _("You had answered this message before; that answer stays."))
    return redirect("annotate:home")


def _own_message(request: HttpRequest, message: int) -> MemberMessage:
    """In a project that the person still belongs to. What is somebody else's does not exist for them."""
    own = MemberMessage.objects.filter(membership__user=_current_user(request), membership__left_at=None)
    return get_object_or_404(own.select_related("membership"), pk=message)


def _current_user(request: HttpRequest) -> User:
    return cast(User, request.user)
