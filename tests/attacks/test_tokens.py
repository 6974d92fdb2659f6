"""A password reset revokes API tokens, a token can be limited to one project, and misuse is logged."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import tokens
from accounts.models import User
from events.models import Event
from people import members
from people.models import Role
from tests import factories
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db
PASSWORD, NEW = "seven green ladders", "eight blue ladders"


@pytest.fixture
def cast() -> Personas:
    return make_personas()


def make_token(user: User, project_id: int | None = None, *scopes: str) -> str:
    _, secret = tokens.create_api_token(
        user=user, name="CI", scopes=scopes or ["read"], lasts=None, now=timezone.now(), project_id=project_id
    )
    return secret


def get(secret: str, name: str, *arguments: str) -> int:
    headers = {"Authorization": f"Bearer {secret}"}
    return Client().get(reverse(f"api:{name}", args=arguments), headers=headers).status_code


def test_a_password_reset_revokes_all_tokens(cast: Personas) -> None:
    secret = make_token(cast.engineer)
    link = tokens.create_password_link(user=cast.engineer, by=cast.owner, now=timezone.now())
    assert get(secret, "projects") == 200
    Client().post(reverse("new_password", args=[link]), {"password": NEW})
    assert get(secret, "projects") == 401
    assert Event.objects.filter(what="account.token_revoked").count() == 1


@pytest.mark.parametrize(("answer", "status"), [({"revokes_tokens": "on"}, 401), ({}, 200)])
def test_a_changed_password_revokes_tokens_if_the_person_says_so(answer: dict[str, str], status: int) -> None:
    user, client = factories.make_user("anna", password=PASSWORD), Client()
    client.force_login(user)
    address = reverse("account_change_password")
    assert "revokes_tokens" not in client.get(address).context["form"].fields
    secret = make_token(user)
    assert "revokes_tokens" in client.get(address).context["form"].fields
    assert client.post(address, {"current": PASSWORD, "password": NEW, **answer}).status_code == 302
    assert get(secret, "projects") == status


def test_a_token_of_a_project_reaches_no_other(cast: Personas) -> None:
    other = make_personas("other-").project
    members.add_member(project=other, user=cast.engineer, role=Role.OWNER, now=timezone.now())
    bound, free = make_token(cast.engineer, cast.project.pk), make_token(cast.engineer)
    assert [get(secret, "project", cast.project.slug) for secret in (bound, free)] == [200, 200]
    assert [get(secret, "project", other.slug) for secret in (bound, free)] == [404, 200]
    listed = [
        [
            each["slug"]
            for each in Client().get(reverse("api:projects"), headers={"Authorization": f"Bearer {s}"}).json()
        ]
        for s in (bound, free)
    ]
    assert listed == [[cast.project.slug], sorted([cast.project.slug, other.slug])]


def test_a_token_of_a_project_does_not_read_the_security_log(cast: Personas) -> None:
    User.objects.filter(pk=cast.owner.pk).update(is_staff=True)
    assert get(make_token(cast.owner, None, "audit"), "security_events") == 200
    assert get(make_token(cast.owner, cast.project.pk, "audit"), "security_events") == 403


def test_a_token_is_bound_only_to_a_project_of_its_person(cast: Personas) -> None:
    client, other = Client(), make_personas("other-").project
    client.force_login(cast.engineer)
    form = {"name": "CI", "scopes": ["read"], "days": "30"}
    assert client.post(reverse("tokens"), {**form, "project": other.pk}).status_code == 422
    assert client.post(reverse("tokens"), {**form, "project": cast.project.pk}).status_code == 201
    assert [each.project for each in tokens.list_api_tokens(cast.engineer)] == [cast.project.pk]


def test_wrong_tokens_are_in_the_security_log() -> None:
    assert get("stepmark_wrong", "projects") == 401
    event = Event.objects.get(what="account.token_refused")
    assert event.by is None
    assert "stepmark_wrong" not in str(event.detail)
    assert event.origin.address == "127.0.0.1"


def test_owners_see_the_tokens_of_their_project_and_revoke_them(cast: Personas) -> None:
    bound, free, foreign = (
        make_token(cast.engineer, cast.project.pk),
        make_token(cast.lead),
        make_token(cast.engineer, cast.project.pk + 1),
    )
    client = Client()
    client.force_login(cast.owner)
    shown = client.get(reverse("dashboard:api_tokens", args=[cast.project.slug])).context["tokens"]
    assert {each.user for each in shown} == {cast.engineer, cast.lead}
    assert len(shown) == 2
    statuses = [
        client.post(reverse("dashboard:revoke_api_token", args=[cast.project.slug, row.pk])).status_code
        for row in (tokens.find_api_token(secret=each, now=timezone.now()) for each in (bound, free, foreign))
        if row
    ]
    assert statuses == [302, 404, 404]
    assert [bool(tokens.find_api_token(secret=each, now=timezone.now())) for each in (bound, free, foreign)] == [
        False,
        True,
        True,
    ]
