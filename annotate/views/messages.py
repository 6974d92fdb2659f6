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
from annotate import asked, ended
from people import messaging, roles
from people.models import Message

MOST = 100


class AnswerForm(forms.Form):
    answer = forms.CharField(max_length=500)


@require_safe
@never_cache
def every(request: HttpRequest) -> HttpResponse:
    """The latest ones, read or not."""
    mine = Message.objects.filter(membership__user=_me(request)).select_related("written_by", "membership__project")
    return render(request, "annotate/messages.html", {"messages_shown": mine.order_by("-pk")[:MOST]})


@require_safe
@never_cache
def unread(request: HttpRequest, slug: str) -> HttpResponse:
    """What the work page shows above a trace, and asks for again with each next one."""
    project = get_object_or_404(roles.projects(_me(request)), slug=slug)
    told = {
        "asked": asked.in_work(_me(request), slug),
        "ended": ended.of(_me(request), slug),
        "message": Message.objects.unread_in(project, _me(request)),
    }
    return render(request, "annotate/_unread.html", told)


@require_POST
def mark_read(request: HttpRequest, message: int) -> HttpResponse:
    messaging.mark_read(message=_mine(request, message), by=_me(request), now=timezone.now())
    return redirect("annotate:home")


@require_POST
def answer(request: HttpRequest, message: int) -> HttpResponse:
    mine, form = _mine(request, message), AnswerForm(request.POST)
    if not form.is_valid():
        said.warning(request, _("An answer is one line of up to 500 characters. Nothing was sent."))
    elif messaging.answer(message=mine, text=form.cleaned_data["answer"], by=_me(request), now=timezone.now()):
        said.success(request, _("Your answer is sent."))
    else:
        said.warning(request, _("You had answered this message before; that answer stays."))
    return redirect("annotate:home")


def _mine(request: HttpRequest, message: int) -> Message:
    """In a project that the person still belongs to. What is somebody else's does not exist for them."""
    own = Message.objects.filter(membership__user=_me(request), membership__left_at=None)
    return get_object_or_404(own.select_related("membership"), pk=message)


def _me(request: HttpRequest) -> User:
    return cast(User, request.user)
