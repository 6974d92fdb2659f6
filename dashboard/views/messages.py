"""Messages between leads and annotators: conversations with one person, and questions about a trace."""

from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.db.models import Count, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from dashboard import rater_names
from dashboard.access import post_view, safe_view
from dashboard.render import project_page
from labeling.models import Project, Rater, Trace
from people import conversations, member_messages, roles
from people.conversations import Conversation
from people.models import MemberMessage, Membership
from people.roles import Action

MAX_MESSAGES = 100  # per page
MAX_MESSAGES_TO_ALL = 10


class MessageForm(forms.Form):
    text = forms.CharField(
        label=_("Message"),
        max_length=member_messages.MAX_LENGTH,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Shown on the home page and next to the work until it is read."),
        error_messages={"required": _("Enter a message.")},
    )


class AnswerForm(forms.Form):
    text = forms.CharField(max_length=member_messages.MAX_LENGTH)
    step = forms.IntegerField(min_value=0, max_value=100_000, required=False)  # position


@dataclass
class ThreadSummary:
    """The latest message of one person's thread."""

    rater: Rater
    name: str
    message: MemberMessage
    is_new: bool  # has an answer that no lead has seen, or an open question


@safe_view(Action.WRITE)
def show_messages(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_messages(request, actor, MessageForm())


@post_view(Action.WRITE)
def send_message_to_all(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = MessageForm(request.POST)
    if not form.is_valid():
        return _render_messages(request, actor, form, status=422)
    n = member_messages.send_to_all(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    if n:
        messages.success(request, ngettext("Sent to %(n)d person.", "Sent to %(n)d people.", n) % {"n": n})
    else:
        messages.warning(request, _("Nothing was sent: there are no other annotators yet."))
    return redirect("dashboard:messages", actor.project.slug)


@safe_view(Action.WRITE)
def show_thread(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    return _render_thread(request, actor, _load_recipient(actor, rater), MessageForm())


@post_view(Action.WRITE)
def send_message(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    recipient, form = _load_recipient(actor, rater), MessageForm(request.POST)
    if not form.is_valid():
        return _render_thread(request, actor, recipient, form, status=422)
    member_messages.send_message(membership=recipient, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(request, _("Message sent."))
    return redirect("dashboard:thread", actor.project.slug, rater)


@post_view(Action.WRITE)
def answer_question(request: HttpRequest, actor: Membership, trace: int, rater: int) -> HttpResponse:
    """Answer an annotator about a step of a trace. The answer appears beside the trace."""
    recipient = _load_recipient(actor, rater)
    row = get_object_or_404(Trace, project=actor.project, pk=trace)
    form = AnswerForm(request.POST)
    asked = MemberMessage.objects.about(row.pk).to_leads().filter(membership=recipient)
    if not form.is_valid() or not asked.filter(step=form.cleaned_data["step"]).exists():
        messages.warning(request, _("Not sent: enter an answer of up to 2,000 characters."))
    else:
        now = timezone.now()
        member_messages.send_message(membership=recipient, trace=row, by=actor.user, now=now, **form.cleaned_data)
        messages.success(request, _("Answer sent. It appears beside the trace and on the annotator’s home page."))
    if request.POST.get("next") == "thread":
        return redirect("dashboard:thread", actor.project.slug, rater)
    return redirect(f"{reverse('dashboard:trace', args=[actor.project.slug, row.pk])}#questions")


@post_view(Action.WRITE)
def mark_answers_seen(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    recipient, now = _load_recipient(actor, rater), timezone.now()
    member_messages.mark_answers_seen(membership=recipient, by=actor.user, now=now)
    member_messages.mark_questions_read(membership=recipient, by=actor.user, now=now)
    return redirect("dashboard:thread", actor.project.slug, rater)


def find_unseen_answers(project: Project) -> set[int]:
    """Return the users whose answers or questions no lead has seen."""
    rows = MemberMessage.objects.with_new_answer(project.pk) | MemberMessage.objects.open_questions(project.pk)
    return set(rows.values_list("membership__user", flat=True))


def load_questions(trace: Trace, actor: Membership) -> list[tuple[Conversation, Rater, str]]:
    """Return the conversations about a trace, each with its rater and their name, for members who may answer."""
    if not roles.membership_may(actor, Action.WRITE):
        return []
    found = conversations.list_conversations(trace)
    if not found:
        return []
    users = [each.membership.user_id for each in found]
    raters = {
        rater.user_id: rater
        for rater in Rater.objects.active().filter(project=actor.project, user__in=users).select_related("user")
    }
    return [
        (each, rater, rater_names.get_display_name(rater, actor))
        for each in found
        if (rater := raters.get(each.membership.user_id))
    ]


def _load_recipient(actor: Membership, rater: int) -> Membership:
    """Load the membership of the recipient, who must be an active member."""
    user = Rater.objects.filter(project=actor.project, pk=rater).values("user")
    members = Membership.objects.active().filter(project=actor.project, user__in=user)
    return get_object_or_404(members.select_related("user", "project"))


def _render_messages(request: HttpRequest, actor: Membership, form: MessageForm, status: int = 200) -> HttpResponse:
    letters = MemberMessage.objects.filter(membership__project=actor.project)
    to_all = letters.filter(is_to_all=True).values("text", "written_at", "written_by__name", "written_by__username")
    counted = to_all.annotate(n=Count("pk"), n_read=Count("read_at"), n_answered=Count("answered_at"))
    return project_page(
        request,
        actor,
        "dashboard/messages.html",
        here="messages",
        status=status,
        form=form,
        n_recipients=member_messages.list_recipients(project=actor.project, by=actor.user).count(),
        to_all=list(counted.order_by("-written_at")[:MAX_MESSAGES_TO_ALL]),
        threads=_load_thread_summaries(actor, letters),
    )


def _load_thread_summaries(actor: Membership, letters: QuerySet[MemberMessage]) -> list[ThreadSummary]:
    """List each person once: new answers first, then by time. Messages to all count once they are answered."""
    in_threads = letters.filter(is_to_all=False) | letters.filter(answered_at__isnull=False)
    latest = in_threads.select_related("membership__user", "written_by").order_by(
        Coalesce("answered_at", "written_at").desc(), "-pk"
    )
    newest = list(latest[:MAX_MESSAGES])
    users = {letter.membership.user_id for letter in newest}
    active = Rater.objects.active().filter(project=actor.project, user__in=users).select_related("user")
    raters = {rater.user_id: rater for rater in active}
    threads: dict[int, ThreadSummary] = {}
    for letter in newest:
        if rater := raters.get(letter.membership.user_id):
            thread = threads.setdefault(
                rater.pk, ThreadSummary(rater, rater_names.get_display_name(rater, actor), letter, is_new=False)
            )
            thread.is_new = thread.is_new or letter.has_new_answer or letter.is_open_question
    return sorted(threads.values(), key=lambda thread: not thread.is_new)


def _render_thread(
    request: HttpRequest, actor: Membership, recipient: Membership, form: MessageForm, status: int = 200
) -> HttpResponse:
    latest = MemberMessage.objects.filter(membership=recipient).select_related("written_by").order_by("-pk")
    letters: Sequence[MemberMessage] = list(reversed(latest[:MAX_MESSAGES]))
    rater = Rater.objects.select_related("user").get(project=actor.project, user=recipient.user_id)
    return project_page(
        request,
        actor,
        "dashboard/thread.html",
        here="messages",
        status=status,
        form=form,
        name=rater_names.get_display_name(rater, actor),
        rater=rater,
        letters=letters,
        n_new=sum(letter.has_new_answer or letter.is_open_question for letter in letters),
    )
