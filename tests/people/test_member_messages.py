"""Messages from leads to raters, and their replies."""

import datetime as dt
from functools import partial

import pytest
from django.db import IntegrityError, transaction

from events.models import Event
from labeling.models import Trace
from people import conversations, member_messages, members, roles
from people.models import MemberMessage, Role
from tests import factories
from tests.concurrency import run_at_once
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db
LATER = dt.timedelta(hours=1)


@pytest.fixture
def cast() -> Personas:
    return make_personas()


def write(cast: Personas, now: dt.datetime, text: str = "Look at section 3 again.") -> MemberMessage:
    return member_messages.send_message(membership=cast.membership(cast.annotator), text=text, by=cast.lead, now=now)


def events() -> list[tuple[str, str]]:
    return list(Event.objects.filter(what__startswith="message.").order_by("id").values_list("what", "subject"))


def test_message_is_unread_until_marked_read(cast: Personas, now: dt.datetime) -> None:
    message = write(cast, now)
    assert list(MemberMessage.objects.unread_by(cast.annotator)) == [message]
    assert MemberMessage.objects.unread_in(cast.project, cast.annotator) == message
    assert member_messages.mark_read(message=message, by=cast.annotator, now=now + LATER)
    assert not member_messages.mark_read(message=message, by=cast.annotator, now=now + 2 * LATER)
    assert not MemberMessage.objects.unread_by(cast.annotator).exists()
    assert MemberMessage.objects.get().read_at == now + LATER  # the time of the first read
    me = f"user:{cast.annotator.pk}"
    assert events() == [("message.written", me), ("message.read", me)]


def test_log_does_not_contain_the_text(cast: Personas, now: dt.datetime) -> None:
    member_messages.answer_message(
        message=write(cast, now, "Secret one."), text="Secret two.", by=cast.annotator, now=now
    )
    assert "Secret" not in str(list(Event.objects.values()))


def test_send_to_all_reaches_all_raters_except_the_sender(cast: Personas, now: dt.datetime) -> None:
    members.begin_rating(project=cast.project, by=cast.lead, now=now)
    members.begin_rating(project=cast.project, by=cast.reviewer, now=now)
    gone = factories.make_user()
    theirs = members.add_member(project=cast.project, user=gone, role=Role.ANNOTATOR, now=now)
    members.remove_member(membership=theirs, by=cast.lead, now=now)
    assert member_messages.send_to_all(project=cast.project, text="Thank you.", by=cast.lead, now=now) == 2
    assert set(MemberMessage.objects.values_list("membership__user__username", "is_to_all")) == {
        ("annotator", True),
        ("reviewer", True),
    }
    assert len(events()) == 2


def test_reply_is_final_and_marks_the_message_read(cast: Personas, now: dt.datetime) -> None:
    message = write(cast, now)
    assert member_messages.answer_message(message=message, text="I did.", by=cast.annotator, now=now + LATER)
    assert not member_messages.answer_message(message=message, text="No.", by=cast.annotator, now=now + LATER)
    told = MemberMessage.objects.get()
    assert (told.answer, told.answered_at, told.read_at) == ("I did.", now + LATER, now + LATER)
    assert [what for what, _ in events()] == ["message.written", "message.read", "message.answered"]


def test_only_those_who_may_write_mark_replies_as_seen(cast: Personas, now: dt.datetime) -> None:
    member_messages.answer_message(message=write(cast, now), text="I did.", by=cast.annotator, now=now)
    theirs = cast.membership(cast.annotator)
    with pytest.raises(roles.NotAllowed):
        member_messages.mark_answers_seen(membership=theirs, by=cast.engineer, now=now)
    assert MemberMessage.objects.with_new_answer(cast.project.pk).count() == 1
    assert member_messages.mark_answers_seen(membership=theirs, by=cast.owner, now=now) == 1
    assert member_messages.mark_answers_seen(membership=theirs, by=cast.owner, now=now) == 0


def test_only_the_recipient_can_read_and_reply(cast: Personas, now: dt.datetime) -> None:
    message = write(cast, now)
    assert not member_messages.mark_read(message=message, by=cast.reviewer, now=now)
    assert not member_messages.answer_message(message=message, text="Me.", by=cast.reviewer, now=now)
    assert MemberMessage.objects.get().read_at is None


@pytest.mark.parametrize("person", ["annotator", "viewer", "engineer", "neighbour"])
def test_only_those_who_may_write_send_messages(person: str, cast: Personas, now: dt.datetime) -> None:
    membership, by = cast.membership(cast.annotator), getattr(cast, person)
    with pytest.raises(roles.NotAllowed):
        member_messages.send_message(membership=membership, text="x", by=by, now=now)
    with pytest.raises(roles.NotAllowed):
        member_messages.send_to_all(project=cast.project, text="x", by=by, now=now)


def test_former_members_have_no_unread_messages(cast: Personas, now: dt.datetime) -> None:
    write(cast, now)
    theirs = cast.membership(cast.annotator)
    members.remove_member(membership=theirs, by=cast.lead, now=now)
    assert not MemberMessage.objects.unread_by(cast.annotator).exists()
    theirs.refresh_from_db()
    with pytest.raises(roles.NotAllowed):
        member_messages.send_message(membership=theirs, text="x", by=cast.lead, now=now)


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("a_message_says_something", {"text": ""}),
        ("an_answer_says_something_and_when", {"answer": "Yes."}),
        ("what_is_answered_was_read", {"answer": "Yes.", "answered_at": factories.NOW}),
        ("an_answer_is_there_to_be_seen", {"answer_seen_at": factories.NOW}),
    ],
)
def test_database_constraints_of_messages(
    rule: str, fields: dict[str, object], cast: Personas, now: dt.datetime
) -> None:
    message = write(cast, now)
    with pytest.raises(IntegrityError, match=rule), transaction.atomic():
        MemberMessage.objects.filter(pk=message.pk).update(**fields)


@pytest.mark.django_db(transaction=True)
def test_concurrent_replies_are_saved_once(cast: Personas, now: dt.datetime) -> None:
    message = write(cast, now)
    answers = run_at_once(
        *[
            partial(member_messages.answer_message, message=message, text=text, by=cast.annotator, now=now)
            for text in ("A", "B")
        ]
    )
    assert sorted(map(str, answers)) == ["False", "True"]
    assert [what for what, _ in events()].count("message.answered") == 1


# --- questions about a trace


def ask(cast: Personas, trace: Trace, now: dt.datetime, step: int | None = 1) -> MemberMessage:
    return member_messages.ask_leads(
        membership=cast.membership(cast.annotator), trace=trace, step=step, text="Why?", by=cast.annotator, now=now
    )


def test_answer_about_the_same_step_closes_the_question(cast: Personas, now: dt.datetime) -> None:
    trace = factories.make_trace(cast.project, ["One.", "Two."])
    question, other = ask(cast, trace, now), ask(cast, trace, now, step=0)
    membership = cast.membership(cast.annotator)
    answer = member_messages.send_message(
        membership=membership, trace=trace, step=1, text="Because.", by=cast.lead, now=now + LATER
    )
    assert list(MemberMessage.objects.open_questions(cast.project.pk)) == [other]
    assert list(MemberMessage.objects.unread_by(cast.annotator)) == [answer]  # own questions are no news
    first, second = conversations.list_conversations(trace)
    assert [first.number, second.number] == [1, 2]
    assert (first.is_open, first.has_news, second.is_open, second.has_news) == (True, False, False, True)
    assert second.messages == [question, answer]
    assert conversations.list_conversations(trace, user_id=cast.lead.pk) == []
    assert member_messages.mark_questions_read(membership=membership, by=cast.lead, now=now) == 1


def test_only_the_member_asks_and_not_without_end(cast: Personas, now: dt.datetime) -> None:
    trace = factories.make_trace(cast.project)
    theirs = cast.membership(cast.annotator)
    with pytest.raises(roles.NotAllowed):
        member_messages.ask_leads(membership=theirs, trace=trace, step=0, text="x", by=cast.lead, now=now)
    elsewhere = factories.make_trace(factories.make_project())
    with pytest.raises(roles.NotAllowed):
        ask(cast, elsewhere, now)
    for _ in range(member_messages.MAX_OPEN_QUESTIONS):
        ask(cast, trace, now, step=None)
    with pytest.raises(member_messages.QuestionRefused):
        ask(cast, trace, now)
