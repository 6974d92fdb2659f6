"""Pages behind single-use links, and the theme."""

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import tokens
from accounts.models import LoginLink, User
from tests import factories

pytestmark = pytest.mark.django_db


def login_address(user: User) -> str:
    return reverse("login_link", args=[tokens.create_login_link(user=user, by=None, now=timezone.now())])


def test_login_link_is_used_up_only_by_the_button(client: Client) -> None:
    anna = factories.make_user("anna")
    address = login_address(anna)
    for _ in range(2):
        response = client.get(address)
        assert response.status_code == 200
        assert "no-store" in response["Cache-Control"]
    assert client.head(address).status_code == 200
    assert client.post(address)["Location"] == reverse("annotate:home")
    assert client.session["_auth_user_id"] == str(anna.pk)
    assert Client().post(address).status_code == 410
    assert LoginLink.objects.get().used_at


def test_login_link_replaces_the_current_login(client: Client) -> None:
    anna, bert = factories.make_user("anna"), factories.make_user("bert")
    client.force_login(bert)
    before = client.session.session_key
    address = login_address(anna)
    assert 'data-replaces="bert"' in client.get(address).content.decode()
    client.post(address)
    assert client.session["_auth_user_id"] == str(anna.pk)
    assert client.session.session_key != before


def test_new_password_logs_in_and_uses_the_link_up(client: Client) -> None:
    anna = factories.make_user("anna")
    token = tokens.create_password_link(user=anna, by=None, now=timezone.now())
    address = reverse("new_password", args=[token])
    assert client.post(address, {"password": "short"}).status_code == 422
    assert client.post(address, {"password": "seven green ladders"}).status_code == 302
    anna.refresh_from_db()
    assert anna.check_password("seven green ladders")
    assert client.session["_auth_user_id"] == str(anna.pk)
    assert Client().post(address, {"password": "eight blue ladders"}).status_code == 410


def test_new_password_ends_open_sessions(client: Client) -> None:
    anna = factories.make_user("anna", password="seven green ladders")
    client.force_login(anna)
    token = tokens.create_password_link(user=anna, by=None, now=timezone.now() - dt.timedelta(days=2))
    Client().post(reverse("new_password", args=[token]), {"password": "eight blue ladders"})
    assert client.get(reverse("annotate:home")).status_code == 302


@pytest.mark.parametrize(
    ("chosen", "kept"), [({"theme": "dark"}, "dark"), ({"theme": "light"}, "light"), ({"theme": "<b>"}, ""), ({}, "")]
)
def test_theme_cookie_holds_light_or_dark(chosen: dict[str, Any], kept: str, client: Client) -> None:
    response = client.post(reverse("theme"), chosen)
    assert response.cookies["theme"].value == kept
    page = client.get(reverse("account_login")).content.decode()
    assert (f'data-theme="{kept}"' in page) is bool(kept)


@pytest.mark.parametrize("back", ["https://example.org/", "//example.org", "javascript:alert(1)"])
def test_theme_redirects_only_within_the_platform(back: str, client: Client) -> None:
    assert client.post(reverse("theme"), {"theme": "dark", "next": back})["Location"] == "/"
    assert client.post(reverse("theme"), {"theme": "dark", "next": "/join/x?y=1"})["Location"] == "/join/x?y=1"
