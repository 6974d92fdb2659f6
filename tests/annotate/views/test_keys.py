"""Keyboard shortcuts of a user."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from annotate import keys
from tests import factories

pytestmark = pytest.mark.django_db
URL = reverse("annotate:keys")


@pytest.fixture
def user() -> User:
    return factories.make_user()


@pytest.fixture
def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_changed_keys_are_saved_and_can_be_reset(user: User, browser: Client) -> None:
    answer = browser.post(URL, {**keys.DEFAULTS, "negative": "A", "submit": "backspace"})
    assert answer.status_code == 302
    user.refresh_from_db()
    assert keys.load_keys(user) == {**keys.DEFAULTS, "negative": "a", "submit": "Backspace"}
    browser.post(URL, {"reset": "1"})
    user.refresh_from_db()
    assert keys.load_keys(user) == keys.DEFAULTS


def test_single_character_shortcuts_can_be_switched_off(user: User, browser: Client) -> None:
    assert keys.load_mode(user) == "on"
    browser.post(URL, {**keys.DEFAULTS, "mode": "focus"})
    user.refresh_from_db()
    assert (keys.load_mode(user), keys.load_keys(user)) == ("focus", keys.DEFAULTS)
    assert browser.post(URL, {**keys.DEFAULTS, "mode": "sometimes"}).status_code == 422


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("c", "duplicate_key"),
        ("C", "duplicate_key"),
        ("ArrowUp", "invalid_key"),
        (" ", "invalid_key"),
        ("\t", "invalid_key"),
        ("", "required"),
    ],
)
def test_invalid_key_is_refused_next_to_its_field(key: str, code: str, user: User, browser: Client) -> None:
    response = browser.post(URL, {**keys.DEFAULTS, "undo": key})
    assert response.status_code == 422
    errors = response.context["form"].errors.as_data()
    assert {name: [error.code for error in each] for name, each in errors.items()} == {"undo": [code]}
    user.refresh_from_db()
    assert user.work_keys == ""


def test_default_key_of_a_new_action_gives_way_to_the_users_choice() -> None:
    assert keys.load_keys(User(work_keys='{"comment": "z", "no_longer_there": "q"}'))["undo"] == ""


def test_error_is_at_the_key_that_was_changed(browser: Client) -> None:
    response = browser.post(URL, {**keys.DEFAULTS, "negative": keys.DEFAULTS["undo"]})
    assert list(response.context["form"].errors) == ["negative"]
    page = response.content.decode()
    assert page.count("autofocus") == 1
    assert re.findall(r'<a href="#(id_\w+)"', page.partition("data-errors")[2]) == ["id_negative"]
