"""Create a project on its page."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Project
from people import members
from people.models import Role
from tests import factories

pytestmark = pytest.mark.django_db
DATA = {"name": "Sums", "slug": "Sums-1", "protocol": "every_step", "overlap": 7}


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
