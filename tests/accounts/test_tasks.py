"""Deletion of expired sessions, and mails about changes of an account."""

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.mail import EmailMessage

from accounts import factors, sessions, tokens, users
from accounts.models import Session, User
from accounts.tasks import delete_expired_sessions, mail_account_change


@pytest.mark.django_db
def test_only_expired_sessions_are_deleted() -> None:
    now = dt.datetime.now(dt.UTC)
    for key, hours in (("over", -1), ("lasts", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=now + dt.timedelta(hours=hours))
    delete_expired_sessions()
    assert [each.session_key for each in Session.objects.all()] == ["lasts"]
    assert sessions.delete_expired_sessions(now=now + dt.timedelta(hours=2)) == 1


@pytest.fixture
def mails(settings: Any, mailoutbox: list[EmailMessage]) -> Iterator[list[EmailMessage]]:
    """Mails that the worker would send, sent at once."""
    settings.EMAIL_HOST = "mail.example.org"
    worker = mail_account_change.app
    worker.conf.task_always_eager = True
    yield mailoutbox
    worker.conf.task_always_eager = False


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("change", "recipients"),
    [
        (lambda user, now: tokens.create_password_link(user=user, by=None, now=now), ["anna@example.org"]),
        (lambda user, now: users.set_password(user=user, password="eight blue ladders", now=now), ["anna@example.org"]),
        (lambda user, now: factors.reset_factors(user=user, by=None, now=now), ["anna@example.org"]),
        (
            lambda user, now: users.change_details(user=user, name="", email="new@example.org", now=now),
            ["anna@example.org", "new@example.org"],
        ),
        (lambda user, now: users.change_details(user=user, name="Anna", email=user.email, now=now), []),
    ],
)
def test_person_is_mailed_when_others_could_take_over_the_account(
    change: Callable[[User, dt.datetime], object], recipients: list[str], mails: list[EmailMessage]
) -> None:
    now = dt.datetime.now(dt.UTC)
    change(users.create_user(username="anna", email="anna@example.org", now=now), now)
    assert [mail.to[0] for mail in mails] == recipients
