"""Messages from leads to annotators, and their answers."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.access import membership_or_404
from dashboard.messages import page
from dashboard.messages.forms import MessageForm
from dashboard.render import project_page
from labeling.models import Rater
from people import member_messages
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def show_messages(request: HttpRequest, slug: str) -> HttpResponse:
    return _render_messages(request, membership_or_404(request, slug, Action.WRITE), MessageForm())


@require_POST
@never_cache
def send_message_to_all(request: HttpRequest, slug: str) -> HttpResponse:
    actor, form = membership_or_404(request, slug, Action.WRITE), MessageForm(request.POST)
    if not form.is_valid():
        return _render_messages(request, actor, form, status=422)
    n = member_messages.send_to_all(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    if n:
        messages.success(request, ngettext("Sent to %(n)d person.", "Sent to %(n)d people.", n) % {"n": n})
    else:
        messages.warning(request, _("Nothing was sent: there are no other annotators yet."))
    return redirect("dashboard:messages", slug)


@require_safe
@never_cache
def show_thread(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    return _render_thread(request, *_load_recipient(request, slug, rater), MessageForm())


@require_POST
@never_cache
def send_message(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, recipient, form = *_load_recipient(request, slug, rater), MessageForm(request.POST)
    if not form.is_valid():
        return _render_thread(request, actor, recipient, form, status=422)
    member_messages.send_message(membership=recipient, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(request, _("Message sent."))
    return redirect("dashboard:thread", slug, rater)


@require_POST
def mark_answers_seen(request: HttpRequest, slug: str, rater: int) -> HttpResponse:
    actor, recipient = _load_recipient(request, slug, rater)
    member_messages.mark_answers_seen(membership=recipient, by=actor.user, now=timezone.now())
    return redirect("dashboard:thread", slug, rater)


def _load_recipient(request: HttpRequest, slug: str, rater: int) -> tuple[Membership, Membership]:
    """Load the sender's membership and the one of the recipient, who must be an active member."""
    actor = membership_or_404(request, slug, Action.WRITE)
    user = Rater.objects.filter(project=actor.project, pk=rater).values("user")
    members = Membership.objects.active().filter(project=actor.project, user__in=user)
    return actor, get_object_or_404(members.select_related("user", "project"))


def _render_messages(request: HttpRequest, actor: Membership, form: MessageForm, status: int = 200) -> HttpResponse:
    inbox = page.load_messages(actor)
    return project_page(
        request, actor, "dashboard/messages.html", here="messages", status=status, form=form, inbox=inbox
    )


def _render_thread(
    request: HttpRequest, actor: Membership, recipient: Membership, form: MessageForm, status: int = 200
) -> HttpResponse:
    thread = page.load_thread(actor, recipient)
    return project_page(
        request, actor, "dashboard/thread.html", here="messages", status=status, form=form, thread=thread
    )
