"""Conversations about the steps of a trace: the questions of a member and the answers of the leads. Read-only."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from labeling.models import Trace
from people.models import MemberMessage, Membership


@dataclass
class Conversation:
    """All messages about one step of a trace between one member and the leads, oldest first."""

    membership: Membership
    step: int | None  # position; None: about the whole trace
    messages: list[MemberMessage] = field(default_factory=list)

    @property
    def number(self) -> int | None:
        """Return the number of the step, as people count."""
        return self.messages[0].step_number

    @property
    def is_open(self) -> bool:
        """Whether no lead has answered or read the last question."""
        return any(message.is_open_question for message in self.messages)

    @property
    def has_news(self) -> bool:
        """Whether the member has not read an answer yet."""
        return any(not message.is_from_member and message.read_at is None for message in self.messages)


def list_conversations(trace: Trace, *, user_id: int | None = None) -> list[Conversation]:
    """Return the conversations about a trace, of one user or of all, in the order of its steps."""
    rows = MemberMessage.objects.about(trace.pk)
    rows = rows if user_id is None else rows.filter(membership__user=user_id, membership__left_at=None)
    return sorted(_group_by_step(rows), key=lambda each: (each.step is None, each.step or 0, each.membership.pk))


def _group_by_step(messages: Iterable[MemberMessage]) -> list[Conversation]:
    grouped: dict[tuple[int, int | None], Conversation] = {}
    for message in messages:
        key = message.membership_id, message.step
        conversation = grouped.setdefault(key, Conversation(message.membership, message.step))
        conversation.messages.append(message)
    return list(grouped.values())
