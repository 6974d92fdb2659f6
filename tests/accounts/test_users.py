"""Creating and erasing users."""

import datetime as dt
from functools import partial

import pytest

from accounts import tokens, users
from accounts.models import LinkPurpose, User
from tests import factories
from tests.concurrency import run_at_once

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["anna", "ANNA", " Anna "])
def test_create_refuses_a_name_in_any_case(name: str, now: dt.datetime) -> None:
    users.create_user(username="Anna", now=now)
    with pytest.raises(users.NameIsTaken) as caught:
        users.create_user(username=name, now=now)
    assert caught.value.field == "username"


def test_create_refuses_an_address_in_any_case(now: dt.datetime) -> None:
    users.create_user(username="anna", email="anna@example.org", now=now)
    with pytest.raises(users.NameIsTaken) as caught:
        users.create_user(username="bert", email="Anna@Example.org", now=now)
    assert caught.value.field == "email"


def test_create_allows_many_users_without_email(now: dt.datetime) -> None:
    assert users.create_user(username="anna", now=now) != users.create_user(username="bert", now=now)


@pytest.mark.usefixtures("real_connections")
def test_concurrent_creation_of_a_name_succeeds_once(now: dt.datetime) -> None:
    answers = run_at_once(
        *[partial(users.create_user, username=name, now=now) for name in ("anna", "Anna", "ANNA", "anna")]
    )
    assert sum(isinstance(answer, User) for answer in answers) == 1
    assert sum(isinstance(answer, users.NameIsTaken) for answer in answers) == 3


def test_erase_removes_all_personal_data(now: dt.datetime) -> None:
    anna = users.create_user(username="anna", email="anna@example.org", name="Anna Ek", password="x" * 12, now=now)
    token = tokens.create_login_link(user=anna, by=None, now=now)
    users.erase_user(user=anna, now=now)
    anna.refresh_from_db()
    assert "anna" not in " ".join(str(value) for value in vars(anna).values()).lower()
    assert not anna.is_active
    assert not anna.has_usable_password()
    with pytest.raises(tokens.LoginLinkInvalid):
        tokens.find_link(token=token, purpose=LinkPurpose.LOGIN, now=now)


def test_erase_frees_username_and_email(now: dt.datetime) -> None:
    users.erase_user(user=users.create_user(username="anna", email="anna@example.org", now=now), now=now)
    assert users.create_user(username="anna", email="anna@example.org", now=now)


def test_two_erased_users_do_not_collide(now: dt.datetime) -> None:
    for user in (factories.make_user(), factories.make_user()):
        users.erase_user(user=user, now=now)
    assert User.objects.filter(erased_at=now).count() == 2
