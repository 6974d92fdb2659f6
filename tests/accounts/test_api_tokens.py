"""API tokens: shown once, stored as a hash, valid for a limited time."""

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import api_tokens
from accounts.models import ApiToken
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
A_DAY = dt.timedelta(days=1)


def test_find_returns_only_active_tokens() -> None:
    user = factories.make_user()
    row, secret = api_tokens.create_token(user=user, name="CI", scopes=["read"], lasts=A_DAY, now=NOW)
    assert secret not in str(ApiToken.objects.values().get())
    assert api_tokens.find_token(secret=secret, now=NOW) == row
    assert api_tokens.find_token(secret=secret + "x", now=NOW) is None
    assert api_tokens.find_token(secret=secret, now=NOW + A_DAY) is None
    api_tokens.revoke_token(token=row, now=NOW)
    assert api_tokens.find_token(secret=secret, now=NOW) is None


def test_find_ignores_tokens_of_inactive_accounts() -> None:
    user = factories.make_user()
    _, secret = api_tokens.create_token(user=user, name="CI", scopes=["read"], lasts=None, now=NOW)
    user.is_active = False
    user.save()
    assert api_tokens.find_token(secret=secret, now=NOW) is None


def test_find_records_the_use_once_an_hour() -> None:
    _, secret = api_tokens.create_token(user=factories.make_user(), name="CI", scopes=["read"], lasts=None, now=NOW)
    for minutes in (0, 10, 59):
        api_tokens.find_token(secret=secret, now=NOW + dt.timedelta(minutes=minutes))
        assert ApiToken.objects.get().used_at == NOW
    api_tokens.find_token(secret=secret, now=NOW + dt.timedelta(minutes=61))
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
    assert api_tokens.find_token(secret=secret, now=timezone.now()) == token
    assert secret not in client.get(reverse("tokens")).content.decode()
    client.post(reverse("withdraw_token", args=[token.pk]))
    assert api_tokens.find_token(secret=secret, now=timezone.now()) is None
    assert client.post(reverse("tokens"), {**form, "scopes": []}).status_code == 422
