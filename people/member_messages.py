"""Messages between leads and annotators. The only module that writes MemberMessage rows.

A lead's message is shown on the home page and the work page until its recipient marks it as read or replies in one
line. An annotator asks about a step of a trace, or disputes a training answer; a lead's answer about the same step
belongs to the same conversation."""

import datetime as dt
from collections.abc import Sequence

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling import step_numbers
from labeling.models import Project, Trace
from people import roles
from people.models import MemberMessage, Membership, MessageKind
from people.roles import Action, NotAllowed

MAX_LENGTH = 2000
MAX_OPEN_QUESTIONS = 20  # of one member


class QuestionRefused(Exception):
    """The question was not sent. The message can be shown to people."""


def list_recipients(*, project: Project, by: User) -> QuerySet[Membership]:
    """Return all members who rate in the project, except the sender."""
    rating = Membership.objects.active().filter(
        project=project, user__raters__project=project, user__raters__removed_at=None
    )
    return rating.exclude(user=by).select_related("user")


def send_message(
    *,
    membership: Membership,
    text: str,
    by: User,
    now: dt.datetime,
    trace: Trace | None = None,
    step: int | None = None,
) -> MemberMessage:
    """Send a message to one member. About a trace, it answers the member's questions about this step."""
    _check_may_write(membership.project, by)
    if membership.left_at is not None:
        raise NotAllowed(_("Not sent: this person has left the project."))
    with transaction.atomic():
        message = MemberMessage.objects.create(
            membership=membership,
            trace=trace,
            step=step,
            step_number=_number_of_step(trace, step),
            text=text,
            written_by=by,
            written_at=now,
        )
        if trace is not None:
            asked = MemberMessage.objects.open_questions(membership.project_id).filter(membership=membership)
            asked.filter(trace=trace, step=step).update(read_at=now)
        _log_event("message.written", [message], by, now)
    return message


def ask_leads(
    *,
    membership: Membership,
    trace: Trace,
    step: int | None,
    text: str,
    by: User,
    now: dt.datetime,
    kind: MessageKind = MessageKind.QUESTION,
) -> MemberMessage:
    """Send a member's question about a step of a trace to the leads, or a dispute of its known answer. Raises
    QuestionRefused."""
    if membership.left_at is not None or membership.user_id != by.pk or membership.project_id != trace.project_id:
        raise NotAllowed(_("Not sent: you are not a member of this project."))
    mine = MemberMessage.objects.open_questions(membership.project_id).filter(membership=membership)
    if mine.count() >= MAX_OPEN_QUESTIONS:
        raise QuestionRefused(_("Not sent: wait until your earlier questions are answered."))
    with transaction.atomic():
        message = MemberMessage.objects.create(
            membership=membership,
            kind=kind,
            trace=trace,
            step=step,
            step_number=_number_of_step(trace, step),
            text=text,
            written_by=by,
            written_at=now,
        )
        _log_event("message.asked", [message], by, now)
    return message


def _number_of_step(trace: Trace | None, step: int | None) -> int | None:
    if trace is None or step is None:
        return None
    return step_numbers.load_step_numbers(trace_ids=[trace.pk]).at(trace.pk, step)


def mark_questions_read(*, membership: Membership, by: User, now: dt.datetime) -> int:
    """Mark this member's questions as read by a lead, without an answer; return how many were open."""
    _check_may_write(membership.project, by)
    asked = MemberMessage.objects.open_questions(membership.project_id).filter(membership=membership)
    return asked.update(read_at=now)


def send_to_all(*, project: Project, text: str, by: User, now: dt.datetime) -> int:
    """Send a copy of the message to each member who rates; return how many."""
    _check_may_write(project, by)
    with transaction.atomic():
        made = MemberMessage.objects.bulk_create(
            MemberMessage(membership=each, text=text, written_by=by, written_at=now, is_to_all=True)
            for each in list_recipients(project=project, by=by)
        )
        _log_event("message.written", made, by, now)
    return len(made)


def mark_read(*, message: MemberMessage, by: User, now: dt.datetime) -> bool:
    """Mark a message as read by its recipient. Return False if it was read before."""
    with transaction.atomic():
        unread = MemberMessage.objects.to_members().filter(pk=message.pk, membership__user=by, read_at=None)
        changed = unread.update(read_at=now)
        if changed:
            _log_event("message.read", [message], by, now)
    return bool(changed)


def answer_message(*, message: MemberMessage, text: str, by: User, now: dt.datetime) -> bool:
    """Save the recipient's only reply and mark the message as read. Return False if it was answered before."""
    with transaction.atomic():
        mark_read(message=message, by=by, now=now)
        unanswered = MemberMessage.objects.to_members().filter(pk=message.pk, membership__user=by, answered_at=None)
        changed = unanswered.update(answer=text, answered_at=now)
        if changed:
            _log_event("message.answered", [message], by, now)
    return bool(changed)


def mark_answers_seen(*, membership: Membership, by: User, now: dt.datetime) -> int:
    """Mark this member's replies as seen by a lead; return how many were new."""
    _check_may_write(membership.project, by)
    fresh = MemberMessage.objects.with_new_answer(membership.project_id).filter(membership=membership)
    return fresh.update(answer_seen_at=now)


def _check_may_write(project: Project, by: User) -> None:
    """Check the current role: the page may have been open for a long time."""
    if not roles.user_may(by, Action.WRITE, project):
        raise NotAllowed(_("Your role does not allow you to send messages in this project. Ask an owner."))


def _log_event(what: str, messages: Sequence[MemberMessage], by: User, now: dt.datetime) -> None:
    entries = [
        audit_log.EventEntry(
            what,
            project=each.membership.project_id,
            subject=f"user:{each.membership.user_id}",
            detail={"message": each.pk, "to_all": each.is_to_all},
        )
        for each in messages
    ]
    audit_log.log_events(entries, by=by, now=now)
