"""The members page: what a lead does there, and what it costs."""

import re

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from dashboard.members import page
from people import invitations, members
from people.models import Invitation, Membership, Role, WorkerId
from tests import factories
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Personas:
    return make_personas()


def page_of(client: Client, cast: Personas, person: User) -> str:
    client.force_login(person)
    return client.get(reverse("dashboard:members", args=[cast.project.slug])).content.decode()


@pytest.mark.parametrize("n", [3, 30])
def test_page_costs_the_same_for_many(
    n: int, client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(n):
        user = factories.make_user()
        members.add_member(project=cast.project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
        invitations.create_invitation(
            project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=factories.NOW, days=36_500
        )
    client.force_login(cast.owner)
    with django_assert_num_queries(11):
        response = client.get(reverse("dashboard:members", args=[cast.project.slug]))
    assert response.content.decode().count('scope="row"') == 5 + 2 * n


def test_page_shows_many_page_by_page_and_finds_a_person(
    client: Client, cast: Personas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE_SIZE", 2)
    for n in range(4):
        user = factories.make_user(f"crowd-{n}", name=f"Person {n}")
        members.add_member(project=cast.project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    WorkerId.objects.create(
        project=cast.project, user=user, worker="5f00", first_came_at=factories.NOW, last_came_at=factories.NOW
    )
    client.force_login(cast.lead)
    address = reverse("dashboard:members", args=[cast.project.slug])

    def listed(query: str) -> list[str]:
        return [row.membership.user.username for row in client.get(address + query).context["people"].rows]

    first = client.get(address).context["people"]
    assert (len(first.rows), first.n) == (6, 9)  # those who do more than rate, and a page of annotators
    assert listed(first.page.older) == ["crowd-0", "crowd-1"]
    assert listed("?q=person+2") == ["crowd-2"]
    assert listed("?q=5f00") == ["crowd-3"]
    assert listed("?q=OWNER") == ["owner"]
    assert listed("?q=a%00b") == listed("?q=nobody") == []
    refused = client.post(
        reverse("dashboard:create_invitation", args=[cast.project.slug]), {"role": ""}
    ).content.decode()
    assert f'href="{address}?before=' in refused  # from there on too, where only forms are sent to


def test_page_offers_what_the_person_may_do_alone(client: Client, cast: Personas) -> None:
    leads = page_of(client, cast, cast.lead)
    owners = page_of(client, cast, cast.owner)
    assert (len(re.findall("Role of", leads)), len(re.findall("Role of", owners))) == (3, 4)
    assert '<option value="lead"' not in leads
    assert '<option value="owner"' in owners
    assert "Role of owner" not in owners  # nobody changes themselves


def test_page_shows_the_link_once(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    told = {"role": "annotator", "uses_allowed": 3, "days": 2, "note": "Ines"}
    response = client.post(reverse("dashboard:create_invitation", args=[cast.project.slug]), told)
    found = re.search(r'value="(http://testserver/join/[^"]+)"', response.content.decode())
    assert found
    assert "no-store" in response["Cache-Control"]
    assert found[1] not in page_of(client, cast, cast.lead)
    assert Client().get(found[1]).status_code == 200
    assert (Invitation.objects.get().uses_allowed, Invitation.objects.get().note) == (3, "Ines")


@pytest.mark.parametrize(
    "told", [{"role": "owner"}, {"role": "lead"}, {"role": "annotator", "uses_allowed": 0}, {"role": "", "days": "x"}]
)
def test_invite_says_what_is_wrong(told: dict[str, object], client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    told = {"uses_allowed": 1, "days": 1, **told}
    response = client.post(reverse("dashboard:create_invitation", args=[cast.project.slug]), told)
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()
    assert not Invitation.objects.exists()


def test_change_role_refuses_a_role_that_is_no_choice(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    address = reverse("dashboard:change_member_role", args=[cast.project.slug, cast.membership(cast.annotator).pk])
    assert client.post(address, {"role": "owner"}).status_code == 422
    assert cast.membership(cast.annotator).role == Role.ANNOTATOR


@pytest.mark.parametrize("name", ["dashboard:remove_member", "dashboard:create_reset_link"])
def test_lead_does_nothing_to_the_owner(name: str, client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    address = reverse(name, args=[cast.project.slug, cast.membership(cast.owner).pk])
    assert client.post(address).status_code == 403
    assert Membership.objects.active().filter(user=cast.owner).exists()
