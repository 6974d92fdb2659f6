"""A person's own keys: kept on the server, one meaning each, shown where keys are shown."""

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


def test_keys_are_kept_with_the_user_and_others_stay_as_they_come(user: User, browser: Client) -> None:
    answer = browser.post(URL, {**keys.DEFAULTS, "negative": "A", "submit": "backspace"})
    assert answer.status_code == 302
    user.refresh_from_db()
    assert keys.load_keys(user) == {**keys.DEFAULTS, "negative": "a", "submit": "Backspace"}
    browser.post(URL, {"reset": "1"})
    user.refresh_from_db()
    assert keys.load_keys(user) == keys.DEFAULTS


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"undo": "c"}, "“c” does this already: Comment."),
        ({"undo": "C"}, "“c” does this already: Comment."),
        ({"undo": "ArrowUp"}, "One character, or one of: Enter"),
        ({"undo": " "}, "One character, or one of: Enter"),
        ({"undo": "\t"}, "One character, or one of: Enter"),
        ({"undo": ""}, "This field is required."),
    ],
)
def test_a_key_that_cannot_be_is_refused_beside_its_field(
    changed: dict[str, str], says: str, user: User, browser: Client
) -> None:
    answer = browser.post(URL, {**keys.DEFAULTS, **changed})
    assert answer.status_code == 422
    assert says in answer.content.decode()
    user.refresh_from_db()
    assert user.work_keys == ""


def test_a_key_that_came_later_gives_way_to_a_person_s_choice() -> None:
    assert keys.load_keys(User(work_keys='{"comment": "z", "no_longer_there": "q"}'))["undo"] == ""
