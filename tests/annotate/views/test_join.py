"""The invitation page."""

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from people import invitations, members
from people.models import Invitation, Role
from tests import factories
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
TOLD = {"username": "ines", "password": "seven green ladders", "name": "Ines", "email": "ines@example.org"}


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    return personas.cast


@pytest.fixture
def address(cast: Personas) -> str:
    _, token = invitations.create_invitation(
        project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=timezone.now()
    )
    return reverse("annotate:join", args=[token])


def test_join_makes_an_account_and_logs_it_in(client: Client, cast: Personas, address: str) -> None:
    first_station = reverse("annotate:enter", args=[cast.project.slug])
    assert client.post(address, TOLD)["Location"] == first_station
    ines = User.objects.get(username="ines")
    assert client.session["_auth_user_id"] == str(ines.pk)
    assert members.get_membership(project=cast.project, user=ines).role == Role.ANNOTATOR
    assert 'data-message="success"' in client.get(first_station).content.decode()


@pytest.mark.parametrize(
    "wrong", [{"username": "OWNER"}, {"username": "a b"}, {"password": "short"}, {"password": "ines"}, {"email": "x"}]
)
def test_join_marks_the_invalid_field(wrong: dict[str, str], client: Client, cast: Personas, address: str) -> None:
    before = User.objects.count()
    response = client.post(address, {**TOLD, **wrong})
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()
    assert f'href="#id_{next(iter(wrong))}"' in response.content.decode().partition("data-errors")[2]
    assert (User.objects.count(), Invitation.objects.get().uses) == (before, 0)


def test_join_adds_a_logged_in_user(client: Client, cast: Personas, address: str) -> None:
    client.force_login(cast.stranger)
    assert 'data-join="account"' in client.get(address).content.decode()
    client.post(address)
    assert members.get_membership(project=cast.project, user=cast.stranger).role == Role.ANNOTATOR


def test_join_changes_nothing_for_a_member(client: Client, cast: Personas, address: str) -> None:
    client.force_login(cast.lead)
    assert 'data-join="member"' in client.get(address).content.decode()
    client.post(address)
    assert (cast.membership(cast.lead).role, Invitation.objects.get().uses) == (Role.LEAD, 0)


def test_opening_an_invitation_does_not_use_it_up(client: Client, cast: Personas, address: str) -> None:
    for _ in range(2):
        assert client.get(address).status_code == 200
    assert Invitation.objects.get().uses == 0
    assert factories.make_user().memberships.count() == 0


@pytest.mark.fault
def test_join_tells_a_stranger_of_few_names_that_are_taken(client: Client, address: str, settings: Any) -> None:
    """Otherwise a link would tell which people have accounts."""
    settings.RATE_LIMIT_FACTOR = 1
    cache.clear()
    statuses = [client.post(address, {**TOLD, "username": "owner"}).status_code for _ in range(12)]
    cache.clear()
    assert statuses == [422] * 10 + [429] * 2
