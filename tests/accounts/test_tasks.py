"""Deletion of expired sessions."""

import datetime as dt

import pytest

from accounts import sessions
from accounts.models import Session
from accounts.tasks import delete_expired_sessions


@pytest.mark.django_db
def test_only_expired_sessions_are_deleted() -> None:
    now = dt.datetime.now(dt.UTC)
    for key, hours in (("over", -1), ("lasts", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=now + dt.timedelta(hours=hours))
    delete_expired_sessions()
    assert [each.session_key for each in Session.objects.all()] == ["lasts"]
    assert sessions.delete_expired_sessions(now=now + dt.timedelta(hours=2)) == 1
