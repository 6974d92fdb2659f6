"""Data of the message pages: messages to all annotators, and one thread per person. Writes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet
from django.db.models.functions import Coalesce

from labeling.models import Project, Rater
from people import member_messages
from people.models import MemberMessage, Membership

MAX_MESSAGES = 100  # per page
MAX_MESSAGES_TO_ALL = 10


@dataclass(frozen=True)
class ThreadSummary:
    """The latest message of one person's thread."""

    rater: Rater
    message: MemberMessage
    is_new: bool  # has an answer that no lead has seen


@dataclass(frozen=True)
class MessagesPage:
    n_recipients: int
    to_all: Sequence[Mapping[str, Any]]
    threads: Sequence[ThreadSummary]


@dataclass(frozen=True)
class MessageThread:
    rater: Rater
    member: Membership
    messages: Sequence[MemberMessage]

    @property
    def n_new(self) -> int:
        return sum(_is_unseen_answer(message) for message in self.messages)


def load_messages(actor: Membership) -> MessagesPage:
    messages = MemberMessage.objects.filter(membership__project=actor.project)
    to_all = messages.filter(is_to_all=True).values("text", "written_at", "written_by__name", "written_by__username")
    counted = to_all.annotate(n=Count("pk"), n_read=Count("read_at"), n_answered=Count("answered_at"))
    return MessagesPage(
        n_recipients=member_messages.list_recipients(project=actor.project, by=actor.user).count(),
        to_all=list(counted.order_by("-written_at")[:MAX_MESSAGES_TO_ALL]),
        threads=_load_thread_summaries(actor, messages),
    )


def _load_thread_summaries(actor: Membership, messages: QuerySet[MemberMessage]) -> list[ThreadSummary]:
    """List each person once: new answers first, then by time. Messages to all count once they are answered."""
    in_threads = messages.filter(is_to_all=False) | messages.filter(answered_at__isnull=False)
    latest = in_threads.select_related("membership__user", "written_by").order_by(
        Coalesce("answered_at", "written_at").desc(), "-pk"
    )
    newest = list(latest[:MAX_MESSAGES])
    raters = {
        rater.user_id: rater
        for rater in Rater.objects.active().filter(
            project=actor.project, user__in={message.membership.user_id for message in newest}
        )
    }
    threads: dict[int, ThreadSummary] = {}
    for message in newest:
        rater = raters.get(message.membership.user_id)
        if rater is not None:
            thread = threads.setdefault(rater.pk, ThreadSummary(rater, message, is_new=False))
            if _is_unseen_answer(message):
                threads[rater.pk] = ThreadSummary(rater, thread.message, is_new=True)
    return sorted(threads.values(), key=lambda thread: not thread.is_new)


def load_thread(actor: Membership, member: Membership) -> MessageThread:
    latest = MemberMessage.objects.filter(membership=member).select_related("written_by").order_by("-pk")[:MAX_MESSAGES]
    rater = Rater.objects.get(project=actor.project, user=member.user_id)
    return MessageThread(rater, member, list(reversed(latest)))


def find_unseen_answers(project: Project) -> set[int]:
    """Return the users whose answers no lead has seen."""
    return set(MemberMessage.objects.with_new_answer(project.pk).values_list("membership__user", flat=True))


def _is_unseen_answer(message: MemberMessage) -> bool:
    return message.answered_at is not None and message.answer_seen_at is None
