"""Create and clone a project, and change its state."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Project
from people import members
from people.models import Role
from tests import factories
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db
DATA = {"name": "Sums", "slug": "Sums-1", "protocol": "every_step", "overlap": 7}


@pytest.fixture
def cast(client: Client) -> Personas:
    cast = make_personas()
    client.force_login(cast.owner)
    return cast


def test_creator_becomes_the_owner(client: Client) -> None:
    anna = factories.make_user(is_staff=True)
    client.force_login(anna)
    response = client.post(reverse("dashboard:new_project"), DATA)
    assert response["Location"] == reverse("dashboard:members", args=["sums-1"])
    project = Project.objects.get()
    assert project.protocol == "every_step"
    assert project.overlap == 7
    assert project.overlap_limit == 7
    assert members.get_membership(project=project, user=anna).role == Role.OWNER


@pytest.mark.parametrize("wrong", [{"slug": "taken"}, {"slug": "new"}, {"slug": "a b"}, {"overlap": 0}, {"name": ""}])
def test_invalid_project_is_refused(wrong: dict[str, object], client: Client) -> None:
    factories.make_project("taken")
    client.force_login(factories.make_user(is_staff=True))
    response = client.post(reverse("dashboard:new_project"), {**DATA, **wrong})
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()
    assert Project.objects.count() == 1


def test_project_states_follow_the_buttons(client: Client, cast: Personas) -> None:
    for verb, state in (("pause", "paused"), ("resume", "open"), ("close", "closed"), ("archive", "archived")):
        client.post(reverse(f"dashboard:{verb}_project", args=[cast.project.slug]))
        cast.project.refresh_from_db()
        assert cast.project.state == state
    response = client.post(reverse("dashboard:pause_project", args=[cast.project.slug]), follow=True)
    assert [message.level_tag for message in response.context["messages"]][-1] == "warning"


def test_clone_copies_only_settings_and_guideline(client: Client, cast: Personas) -> None:
    Project.objects.filter(pk=cast.project.pk).update(asks_reason=True, overlap=4)
    client.post(reverse("dashboard:guideline", args=[cast.project.slug]), {"body": "Read.", "publish": "yes"})
    factories.make_trace(cast.project)
    address = reverse("dashboard:create_project_clone", args=[cast.project.slug])
    assert client.post(address, {"name": "Two", "slug": "Next-Door"}).status_code == 422
    assert client.post(address, {"name": "Two", "slug": "two"}).status_code == 302
    made = Project.objects.get(slug="two")
    assert made.asks_reason
    assert made.overlap == 4
    assert not made.traces.exists()
    assert made.guideline is not None
    assert made.guideline.body == "Read."
    assert members.get_membership(project=made, user=cast.owner).role == Role.OWNER
