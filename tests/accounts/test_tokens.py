"""Single-use links, and API tokens: shown once, stored as a hash, valid for a limited time."""

import datetime as dt
import re
from functools import partial

import pytest
from django.core.mail import EmailMessage
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from accounts import tasks, tokens, users
from accounts.models import ApiToken, LinkPurpose, LoginLink, User
from tests import factories
from tests.concurrency import run_at_once
from tests.factories import NOW

pytestmark = pytest.mark.django_db
A_DAY = dt.timedelta(days=1)
LOGIN, NEW_PASSWORD = LinkPurpose.LOGIN, LinkPurpose.NEW_PASSWORD


def test_link_can_be_used_once(now: dt.datetime) -> None:
    anna = factories.make_user("anna")
    token = tokens.create_login_link(user=anna, by=None, now=now)
    assert tokens.use_link(token=token, purpose=LOGIN, now=now) == anna
    with pytest.raises(tokens.LoginLinkInvalid):
        tokens.use_link(token=token, purpose=LOGIN, now=now)


def test_only_the_hash_of_a_link_is_stored(now: dt.datetime) -> None:
    token = tokens.create_login_link(user=factories.make_user(), by=None, now=now)
    kept = LoginLink.objects.get()
    assert kept.token_digest == tokens.hash_token(token)
    assert token not in {str(value) for value in vars(kept).values()}


def test_find_does_not_use_the_link_up(now: dt.datetime) -> None:
    token = tokens.create_login_link(user=factories.make_user(), by=None, now=now)
    assert tokens.find_link(token=token, purpose=LOGIN, now=now)
    assert tokens.find_link(token=token, purpose=LOGIN, now=now)


def test_find_refuses_expired_links(now: dt.datetime) -> None:
    token = tokens.create_login_link(user=factories.make_user(), by=None, now=now)
    assert tokens.find_link(token=token, purpose=LOGIN, now=now + dt.timedelta(minutes=14, seconds=59))
    with pytest.raises(tokens.LoginLinkInvalid):
        tokens.find_link(token=token, purpose=LOGIN, now=now + dt.timedelta(minutes=15))


def test_find_refuses_another_purpose(now: dt.datetime) -> None:
    token = tokens.create_login_link(user=factories.make_user(), by=None, now=now)
    with pytest.raises(tokens.LoginLinkInvalid):
        tokens.find_link(token=token, purpose=NEW_PASSWORD, now=now)


def test_find_refuses_links_of_inactive_users(now: dt.datetime) -> None:
    user = factories.make_user()
    token = tokens.create_login_link(user=user, by=None, now=now)
    User.objects.filter(pk=user.pk).update(is_active=False)
    with pytest.raises(tokens.LoginLinkInvalid):
        tokens.find_link(token=token, purpose=LOGIN, now=now)


def test_new_password_link_revokes_the_earlier_one(now: dt.datetime) -> None:
    user = factories.make_user()
    first = tokens.create_password_link(user=user, by=None, now=now)
    second = tokens.create_password_link(user=user, by=None, now=now)
    with pytest.raises(tokens.LoginLinkInvalid):
        tokens.find_link(token=first, purpose=NEW_PASSWORD, now=now)
    assert tokens.find_link(token=second, purpose=NEW_PASSWORD, now=now)


def test_setting_a_password_revokes_all_other_links(now: dt.datetime) -> None:
    user = factories.make_user()
    login = tokens.create_login_link(user=user, by=None, now=now)
    token = tokens.create_password_link(user=user, by=None, now=now)
    users.set_password_by_link(token=token, password="seven green ladders", now=now)
    user.refresh_from_db()
    assert user.check_password("seven green ladders")
    with pytest.raises(tokens.LoginLinkInvalid):
        tokens.find_link(token=login, purpose=LOGIN, now=now)


@pytest.mark.usefixtures("real_connections")
def test_concurrent_uses_of_a_link_succeed_once(now: dt.datetime) -> None:
    token = tokens.create_login_link(user=factories.make_user(), by=None, now=now)
    answers = run_at_once(*[partial(tokens.use_link, token=token, purpose=LOGIN, now=now)] * 6)
    assert sum(isinstance(answer, User) for answer in answers) == 1
    assert sum(isinstance(answer, tokens.LoginLinkInvalid) for answer in answers) == 5


def test_login_link_prints_a_working_url(capsys: pytest.CaptureFixture[str], now: dt.datetime) -> None:
    factories.make_user("anna", email="anna@example.org")
    call_command("login_link", "Anna@example.org", "--origin", "http://127.0.0.1:8017/")
    address = capsys.readouterr().out.strip()
    assert address.startswith("http://127.0.0.1:8017/login-link/")
    link = LoginLink.objects.get(token_digest=tokens.hash_token(address.rpartition("/")[2]))
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


def test_find_returns_only_active_api_tokens() -> None:
    user = factories.make_user()
    row, secret = tokens.create_api_token(user=user, name="CI", scopes=["read"], lasts=A_DAY, now=NOW)
    assert secret not in str(ApiToken.objects.values().get())
    assert tokens.find_api_token(secret=secret, now=NOW) == row
    assert tokens.find_api_token(secret=tokens.generate_api_secret(), now=NOW) is None
    assert tokens.find_api_token(secret=secret, now=NOW + A_DAY) is None
    tokens.revoke_api_token(token=row, by=user, now=NOW)
    assert tokens.find_api_token(secret=secret, now=NOW) is None


def test_find_ignores_api_tokens_of_inactive_accounts() -> None:
    user = factories.make_user()
    _, secret = tokens.create_api_token(user=user, name="CI", scopes=["read"], lasts=None, now=NOW)
    user.is_active = False
    user.save()
    assert tokens.find_api_token(secret=secret, now=NOW) is None


def test_find_records_the_use_once_an_hour() -> None:
    _, secret = tokens.create_api_token(user=factories.make_user(), name="CI", scopes=["read"], lasts=None, now=NOW)
    for minutes in (0, 10, 59):
        tokens.find_api_token(secret=secret, now=NOW + dt.timedelta(minutes=minutes))
        assert ApiToken.objects.get().used_at == NOW
    tokens.find_api_token(secret=secret, now=NOW + dt.timedelta(minutes=61))
    assert ApiToken.objects.get().used_at == NOW + dt.timedelta(minutes=61)


def test_page_creates_shows_once_and_revokes_a_token(client: Client) -> None:
    user = factories.make_user()
    client.force_login(user)
    form = {"name": "Cluster", "scopes": ["read", "bring_in"], "days": "30"}
    page = client.post(reverse("tokens"), form)
    token = ApiToken.objects.get()
    assert page.status_code == 201
    secret = page.context["created"][1]
    assert secret in page.content.decode()
    assert tokens.find_api_token(secret=secret, now=timezone.now()) == token
    assert secret not in client.get(reverse("tokens")).content.decode()
    client.post(reverse("withdraw_token", args=[token.pk]))
    assert tokens.find_api_token(secret=secret, now=timezone.now()) is None
    assert client.post(reverse("tokens"), {**form, "scopes": []}).status_code == 422


def test_secrets_have_a_checksum(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    """A wrong secret is refused without a query, and a scanner can tell a token from similar text."""
    secret = tokens.generate_api_secret()
    assert re.fullmatch(r"stepmark_[\w-]{43}[0-9A-Za-z]{6}", secret)
    assert tokens.has_valid_checksum(secret)
    middle = "A" if secret[20] != "A" else "B"
    with django_assert_num_queries(0):
        for wrong in (secret[:20] + middle + secret[21:], secret[:-1], "", "x" * 58, "é" * 58, "other" + secret):
            assert tokens.find_api_token(secret=wrong, now=NOW) is None


@pytest.mark.parametrize(("maximum", "lasts", "expected"), [(30, None, 30), (30, 90, 30), (30, 7, 7), (0, None, None)])
def test_the_operator_limits_the_life_of_tokens(
    maximum: int, lasts: int | None, expected: int | None, settings: Settings
) -> None:
    settings.MAX_TOKEN_DAYS = maximum
    token, _ = tokens.create_api_token(
        user=factories.make_user(), name="CI", scopes=["read"], lasts=lasts * A_DAY if lasts else None, now=NOW
    )
    assert token.expires_at == (NOW + expected * A_DAY if expected else None)


def test_a_lowered_maximum_ends_older_tokens(settings: Settings) -> None:
    _, secret = tokens.create_api_token(user=factories.make_user(), name="CI", scopes=["read"], lasts=None, now=NOW)
    assert tokens.find_api_token(secret=secret, now=NOW + 40 * A_DAY)
    settings.MAX_TOKEN_DAYS = 30
    assert tokens.find_api_token(secret=secret, now=NOW + 40 * A_DAY) is None


def test_page_offers_no_longer_life_than_the_maximum(client: Client, settings: Settings) -> None:
    client.force_login(factories.make_user())
    for maximum, days in ((60, [30, 60]), (365, [30, 90, 365]), (0, [30, 90, 365, 0])):
        settings.MAX_TOKEN_DAYS = maximum
        choices = client.get(reverse("tokens")).context["form"].fields["days"].choices
        assert [value for value, _label in choices] == days


def test_the_person_is_mailed_about_a_new_token(mailoutbox: list[EmailMessage]) -> None:
    user = factories.make_user("anna", email="anna@example.org")
    token, secret = tokens.create_api_token(user=user, name="CI", scopes=["read"], lasts=None, now=NOW)
    tasks.mail_new_token(token.pk)
    assert [mail.to for mail in mailoutbox] == [["anna@example.org"]]
    assert secret not in mailoutbox[0].body
    tasks.mail_new_token(0)
    assert len(mailoutbox) == 1
