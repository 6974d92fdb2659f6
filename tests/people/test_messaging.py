"""Leads write to those who rate, who read, and answer once."""

import datetime as dt
from functools import partial

import pytest
from django.db import IntegrityError, transaction

from events.models import Event
from people import members, messaging, roles
from people.models import Message, Role
from tests import factories
from tests.people.cast import Cast, make_cast
from tests.together import at_once

pytestmark = pytest.mark.django_db
LATER = dt.timedelta(hours=1)


@pytest.fixture
def cast() -> Cast:
    return make_cast()


def write(cast: Cast, now: dt.datetime, text: str = "Look at section 3 again.") -> Message:
    return messaging.write(membership=cast.membership(cast.annotator), text=text, by=cast.lead, now=now)


def events() -> list[tuple[str, str]]:
    return list(Event.objects.filter(what__startswith="message.").order_by("id").values_list("what", "subject"))


def test_write_stands_with_its_reader_until_it_is_read(cast: Cast, now: dt.datetime) -> None:
    message = write(cast, now)
    assert list(Message.objects.unread_by(cast.annotator)) == [message]
    assert Message.objects.unread_in(cast.project, cast.annotator) == message
    assert messaging.mark_read(message=message, by=cast.annotator, now=now + LATER)
    assert not messaging.mark_read(message=message, by=cast.annotator, now=now + 2 * LATER)
    assert not Message.objects.unread_by(cast.annotator).exists()
    assert Message.objects.get().read_at == now + LATER  # when it was read first
    me = f"user:{cast.annotator.pk}"
    assert events() == [("message.written", me), ("message.read", me)]


def test_log_holds_no_word_of_a_message(cast: Cast, now: dt.datetime) -> None:
    messaging.answer(message=write(cast, now, "Secret one."), text="Secret two.", by=cast.annotator, now=now)
    assert "Secret" not in str(list(Event.objects.values()))


def test_write_to_all_reaches_each_who_rates_but_the_writer(cast: Cast, now: dt.datetime) -> None:
    members.begin_rating(project=cast.project, by=cast.lead, now=now)
    members.begin_rating(project=cast.project, by=cast.reviewer, now=now)
    gone = factories.make_user()
    theirs = members.join(project=cast.project, user=gone, role=Role.ANNOTATOR, now=now)
    members.remove(membership=theirs, by=cast.lead, now=now)
    assert messaging.write_to_all(project=cast.project, text="Thank you.", by=cast.lead, now=now) == 2
    assert set(Message.objects.values_list("membership__user__username", "is_to_all")) == {
        ("annotator", True),
        ("reviewer", True),
    }
    assert len(events()) == 2


def test_answer_is_given_once_and_says_that_it_was_read(cast: Cast, now: dt.datetime) -> None:
    message = write(cast, now)
    assert messaging.answer(message=message, text="I did.", by=cast.annotator, now=now + LATER)
    assert not messaging.answer(message=message, text="No.", by=cast.annotator, now=now + LATER)
    told = Message.objects.get()
    assert (told.answer, told.answered_at, told.read_at) == ("I did.", now + LATER, now + LATER)
    assert [what for what, _ in events()] == ["message.written", "message.read", "message.answered"]


def test_see_answers_is_for_leads(cast: Cast, now: dt.datetime) -> None:
    messaging.answer(message=write(cast, now), text="I did.", by=cast.annotator, now=now)
    theirs = cast.membership(cast.annotator)
    with pytest.raises(roles.NotAllowed):
        messaging.see_answers(membership=theirs, by=cast.reviewer, now=now)
    assert Message.objects.with_new_answer(cast.project.pk).count() == 1
    assert messaging.see_answers(membership=theirs, by=cast.owner, now=now) == 1
    assert messaging.see_answers(membership=theirs, by=cast.owner, now=now) == 0


def test_nobody_reads_or_answers_for_another(cast: Cast, now: dt.datetime) -> None:
    message = write(cast, now)
    assert not messaging.mark_read(message=message, by=cast.reviewer, now=now)
    assert not messaging.answer(message=message, text="Me.", by=cast.reviewer, now=now)
    assert Message.objects.get().read_at is None


@pytest.mark.parametrize("person", ["annotator", "reviewer", "engineer", "neighbour"])
def test_write_is_for_leads(person: str, cast: Cast, now: dt.datetime) -> None:
    membership, by = cast.membership(cast.annotator), getattr(cast, person)
    with pytest.raises(roles.NotAllowed):
        messaging.write(membership=membership, text="x", by=by, now=now)
    with pytest.raises(roles.NotAllowed):
        messaging.write_to_all(project=cast.project, text="x", by=by, now=now)


def test_what_was_written_waits_no_more_for_who_has_left(cast: Cast, now: dt.datetime) -> None:
    write(cast, now)
    theirs = cast.membership(cast.annotator)
    members.remove(membership=theirs, by=cast.lead, now=now)
    assert not Message.objects.unread_by(cast.annotator).exists()
    theirs.refresh_from_db()
    with pytest.raises(roles.NotAllowed):
        messaging.write(membership=theirs, text="x", by=cast.lead, now=now)


def test_erase_takes_the_words_of_both_sides_away(cast: Cast, now: dt.datetime) -> None:
    write(cast, now)
    messaging.write_to_all(project=cast.project, text="x", by=cast.owner, now=now)
    members.erase(user=cast.lead, by=None, now=now)
    assert Message.objects.get().written_by == cast.owner
    members.erase(user=cast.annotator, by=None, now=now)
    assert not Message.objects.exists()


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("a_message_says_something", {"text": ""}),
        ("an_answer_says_something_and_when", {"answer": "Yes."}),
        ("what_is_answered_was_read", {"answer": "Yes.", "answered_at": factories.NOW}),
        ("an_answer_is_there_to_be_seen", {"answer_seen_at": factories.NOW}),
    ],
)
def test_database_keeps_messages_in_order(rule: str, fields: dict[str, object], cast: Cast, now: dt.datetime) -> None:
    message = write(cast, now)
    with pytest.raises(IntegrityError, match=rule), transaction.atomic():
        Message.objects.filter(pk=message.pk).update(**fields)


@pytest.mark.django_db(transaction=True)
def test_answer_from_two_tabs_stands_once(cast: Cast, now: dt.datetime) -> None:
    message = write(cast, now)
    answers = at_once(
        *[partial(messaging.answer, message=message, text=text, by=cast.annotator, now=now) for text in ("A", "B")]
    )
    assert sorted(map(str, answers)) == ["False", "True"]
    assert [what for what, _ in events()].count("message.answered") == 1
