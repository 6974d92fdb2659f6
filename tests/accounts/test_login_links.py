"""Single-use links."""

import datetime as dt
from functools import partial

import pytest
from django.core.management import CommandError, call_command

from accounts import login_links, secret_tokens, users
from accounts.models import LinkPurpose, LoginLink, User
from tests import factories
from tests.concurrency import run_at_once

pytestmark = pytest.mark.django_db
LOGIN, NEW_PASSWORD = LinkPurpose.LOGIN, LinkPurpose.NEW_PASSWORD


def test_link_can_be_used_once(now: dt.datetime) -> None:
    anna = factories.make_user("anna")
    token = login_links.create_login_link(user=anna, by=None, now=now)
    assert login_links.use_link(token=token, purpose=LOGIN, now=now) == anna
    with pytest.raises(login_links.LoginLinkInvalid):
        login_links.use_link(token=token, purpose=LOGIN, now=now)


def test_only_the_hash_of_a_link_is_stored(now: dt.datetime) -> None:
    token = login_links.create_login_link(user=factories.make_user(), by=None, now=now)
    kept = LoginLink.objects.get()
    assert kept.token_digest == secret_tokens.hash_token(token)
    assert token not in {str(value) for value in vars(kept).values()}


def test_find_does_not_use_the_link_up(now: dt.datetime) -> None:
    token = login_links.create_login_link(user=factories.make_user(), by=None, now=now)
    assert login_links.find_link(token=token, purpose=LOGIN, now=now)
    assert login_links.find_link(token=token, purpose=LOGIN, now=now)


def test_find_refuses_expired_links(now: dt.datetime) -> None:
    token = login_links.create_login_link(user=factories.make_user(), by=None, now=now)
    assert login_links.find_link(token=token, purpose=LOGIN, now=now + dt.timedelta(minutes=14, seconds=59))
    assert login_links.find_link(token=token, purpose=LOGIN, now=now + dt.timedelta(minutes=15)) is None


def test_find_refuses_another_purpose(now: dt.datetime) -> None:
    token = login_links.create_login_link(user=factories.make_user(), by=None, now=now)
    assert login_links.find_link(token=token, purpose=NEW_PASSWORD, now=now) is None


def test_find_refuses_links_of_inactive_users(now: dt.datetime) -> None:
    user = factories.make_user()
    token = login_links.create_login_link(user=user, by=None, now=now)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert login_links.find_link(token=token, purpose=LOGIN, now=now) is None


def test_new_password_link_revokes_the_earlier_one(now: dt.datetime) -> None:
    user = factories.make_user()
    first = login_links.create_password_link(user=user, by=None, now=now)
    second = login_links.create_password_link(user=user, by=None, now=now)
    assert login_links.find_link(token=first, purpose=NEW_PASSWORD, now=now) is None
    assert login_links.find_link(token=second, purpose=NEW_PASSWORD, now=now)


def test_setting_a_password_revokes_all_other_links(now: dt.datetime) -> None:
    user = factories.make_user()
    login = login_links.create_login_link(user=user, by=None, now=now)
    token = login_links.create_password_link(user=user, by=None, now=now)
    users.set_password_by_link(token=token, password="seven green ladders", now=now)
    user.refresh_from_db()
    assert user.check_password("seven green ladders")
    assert login_links.find_link(token=login, purpose=LOGIN, now=now) is None


@pytest.mark.usefixtures("real_connections")
def test_concurrent_uses_of_a_link_succeed_once(now: dt.datetime) -> None:
    token = login_links.create_login_link(user=factories.make_user(), by=None, now=now)
    answers = run_at_once(*[partial(login_links.use_link, token=token, purpose=LOGIN, now=now)] * 6)
    assert sum(isinstance(answer, User) for answer in answers) == 1
    assert sum(isinstance(answer, login_links.LoginLinkInvalid) for answer in answers) == 5


def test_login_link_prints_a_working_url(capsys: pytest.CaptureFixture[str], now: dt.datetime) -> None:
    factories.make_user("anna", email="anna@example.org")
    call_command("login_link", "Anna@example.org", "--origin", "http://127.0.0.1:8017/")
    address = capsys.readouterr().out.strip()
    assert address.startswith("http://127.0.0.1:8017/login-link/")
    link = LoginLink.objects.get(token_digest=secret_tokens.hash_token(address.rpartition("/")[2]))
    assert link.expires_at - link.made_at == dt.timedelta(minutes=15)


@pytest.mark.parametrize("name", ["nobody", ""])
def test_login_link_refuses_an_unknown_user(name: str) -> None:
    with pytest.raises(CommandError, match=repr(name)):
        call_command("login_link", name)


def test_login_link_refuses_an_inactive_account() -> None:
    factories.make_user("anna", is_active=False)
    with pytest.raises(CommandError, match="anna"):
        call_command("login_link", "anna")
    assert not LoginLink.objects.exists()
