"""The members page: its actions and its number of queries."""

import re

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from dashboard.views import members as members_views
from people import invitations, members
from people.models import Invitation, Membership, Role, WorkerId
from tests import factories
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    return personas.cast


def load_page(client: Client, cast: Personas, person: User) -> str:
    client.force_login(person)
    return client.get(reverse("dashboard:members", args=[cast.project.slug])).content.decode()


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.fault
def test_query_count_does_not_depend_on_members(
    n: int, client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(n):
        user = factories.make_user()
        members.add_member(project=cast.project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
        invitations.create_invitation(
            project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=factories.NOW, days=36_500
        )
    client.force_login(cast.owner)
    with django_assert_num_queries(13):
        response = client.get(reverse("dashboard:members", args=[cast.project.slug]))
    assert response.content.decode().count('scope="row"') == 6 + 2 * n


@pytest.mark.fault
def test_members_are_paged_and_searched(client: Client, cast: Personas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members_views, "PAGE_SIZE", 2)
    for n in range(4):
        user = factories.make_user(f"crowd-{n}", name=f"Person {n}")
        members.add_member(project=cast.project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    WorkerId.objects.create(
        project=cast.project, user=user, worker="5f00", first_came_at=factories.NOW, last_came_at=factories.NOW
    )
    client.force_login(cast.lead)
    address = reverse("dashboard:members", args=[cast.project.slug])

    def list_usernames(query: str) -> list[str]:
        return [row.membership.user.username for row in client.get(address + query).context["members"].rows]

    first = client.get(address).context["members"]
    assert len(first.rows) == 7  # all other roles, and one page of annotators
    assert first.n == 10
    assert list_usernames(first.page.older) == ["crowd-0", "crowd-1"]
    assert list_usernames("?q=person+2") == ["crowd-2"]
    assert list_usernames("?q=5f00") == ["crowd-3"]
    assert list_usernames("?q=OWNER") == ["owner"]
    assert list_usernames("?q=a%00b") == list_usernames("?q=nobody") == []
    refused = client.post(
        reverse("dashboard:create_invitation", args=[cast.project.slug]), {"role": ""}
    ).content.decode()
    assert f'href="{address}?before=' in refused  # also on a page that answers a form


def test_page_offers_only_permitted_actions(client: Client, cast: Personas) -> None:
    leads = load_page(client, cast, cast.lead)
    owners = load_page(client, cast, cast.owner)
    assert leads.count("data-role") == 4
    assert owners.count("data-role") == 5  # not their own role
    assert '<option value="owner"' not in leads
    assert '<option value="owner"' in owners


def test_invitation_link_is_shown_once(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    data = {"role": "annotator", "uses_allowed": 3, "days": 2, "note": "Ines"}
    response = client.post(reverse("dashboard:create_invitation", args=[cast.project.slug]), data)
    found = re.search(r'value="(http://testserver/join/[^"]+)"', response.content.decode())
    assert found
    assert "no-store" in response["Cache-Control"]
    assert found[1] not in load_page(client, cast, cast.lead)
    assert Client().get(found[1]).status_code == 200
    assert Invitation.objects.get().uses_allowed == 3
    assert Invitation.objects.get().note == "Ines"


@pytest.mark.parametrize(
    "data", [{"role": "owner"}, {"role": "chief"}, {"role": "annotator", "uses_allowed": 0}, {"role": "", "days": "x"}]
)
def test_invalid_invitation_is_refused(data: dict[str, object], client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    data = {"uses_allowed": 1, "days": 1, **data}
    response = client.post(reverse("dashboard:create_invitation", args=[cast.project.slug]), data)
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()
    assert not Invitation.objects.exists()


def test_role_outside_the_choices_is_refused(client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    address = reverse("dashboard:change_member_role", args=[cast.project.slug, cast.membership(cast.annotator).pk])
    assert client.post(address, {"role": "owner"}).status_code == 422
    assert cast.membership(cast.annotator).role == Role.ANNOTATOR


@pytest.mark.parametrize("name", ["dashboard:remove_member", "dashboard:create_reset_link"])
def test_lead_cannot_manage_the_owner(name: str, client: Client, cast: Personas) -> None:
    client.force_login(cast.lead)
    address = reverse(name, args=[cast.project.slug, cast.membership(cast.owner).pk])
    assert client.post(address).status_code == 403
    assert Membership.objects.active().filter(user=cast.owner).exists()
