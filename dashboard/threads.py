"""Messages of a project as its leads see them: what went to everybody, and one thread for each person. Reads alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet
from django.db.models.functions import Coalesce

from labeling.models import Project, Rater
from people import messaging
from people.models import Membership, Message

MOST = 100  # messages on a page
MOST_TO_ALL = 10


@dataclass(frozen=True)
class Line:
    """The latest message of one person's thread."""

    rater: Rater
    message: Message
    is_new: bool  # an answer that no lead has seen


@dataclass(frozen=True)
class Threads:
    n_reached: int
    to_all: Sequence[Mapping[str, Any]]
    lines: Sequence[Line]


@dataclass(frozen=True)
class Thread:
    rater: Rater
    member: Membership
    messages: Sequence[Message]

    @property
    def n_new(self) -> int:
        return sum(_is_new(message) for message in self.messages)


def of_project(actor: Membership) -> Threads:
    mine = Message.objects.filter(membership__project=actor.project)
    to_all = mine.filter(is_to_all=True).values("text", "written_at", "written_by__name", "written_by__username")
    counted = to_all.annotate(n=Count("pk"), n_read=Count("read_at"), n_answered=Count("answered_at"))
    return Threads(
        n_reached=messaging.reached(project=actor.project, by=actor.user).count(),
        to_all=list(counted.order_by("-written_at")[:MOST_TO_ALL]),
        lines=_lines(actor, mine),
    )


def _lines(actor: Membership, mine: QuerySet[Message]) -> list[Line]:
    """Each person once, new answers first, then by what happened last. What went to everybody counts once answered."""
    spoken = mine.filter(is_to_all=False) | mine.filter(answered_at__isnull=False)
    latest = spoken.select_related("membership__user", "written_by").order_by(
        Coalesce("answered_at", "written_at").desc(), "-pk"
    )
    found = list(latest[:MOST])
    raters = {
        rater.user_id: rater
        for rater in Rater.objects.active().filter(
            project=actor.project, user__in={message.membership.user_id for message in found}
        )
    }
    once: dict[int, Line] = {}
    for message in found:
        rater = raters.get(message.membership.user_id)
        if rater is not None:
            line = once.setdefault(rater.pk, Line(rater, message, is_new=False))
            if _is_new(message):
                once[rater.pk] = Line(line.rater, line.message, is_new=True)
    return sorted(once.values(), key=lambda line: not line.is_new)


def of_member(actor: Membership, member: Membership) -> Thread:
    latest = Message.objects.filter(membership=member).select_related("written_by").order_by("-pk")[:MOST]
    rater = Rater.objects.get(project=actor.project, user=member.user_id)
    return Thread(rater, member, list(reversed(latest)))


def answered(project: Project) -> set[int]:
    """Whose answers no lead has seen yet, by the user's id."""
    return set(Message.objects.with_new_answer(project.pk).values_list("membership__user", flat=True))


def _is_new(message: Message) -> bool:
    return message.answered_at is not None and message.answer_seen_at is None
