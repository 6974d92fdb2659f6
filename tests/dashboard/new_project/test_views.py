"""Making a project by hand."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Project
from people import members
from people.models import Role
from tests import factories

pytestmark = pytest.mark.django_db
TOLD = {"name": "Sums", "slug": "Sums-1", "protocol": "every_step", "overlap": 7}


def test_new_makes_its_maker_the_owner(client: Client) -> None:
    anna = factories.make_user(is_staff=True)
    client.force_login(anna)
    response = client.post(reverse("dashboard:new_project"), TOLD)
    assert response["Location"] == reverse("dashboard:members", args=["sums-1"])
    project = Project.objects.get()
    assert (project.protocol, project.overlap, project.overlap_limit) == ("every_step", 7, 7)
    assert members.get_membership(project=project, user=anna).role == Role.OWNER


@pytest.mark.parametrize("wrong", [{"slug": "taken"}, {"slug": "new"}, {"slug": "a b"}, {"overlap": 0}, {"name": ""}])
def test_new_says_what_is_wrong(wrong: dict[str, object], client: Client) -> None:
    factories.make_project("taken")
    client.force_login(factories.make_user(is_staff=True))
    response = client.post(reverse("dashboard:new_project"), {**TOLD, **wrong})
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()
    assert Project.objects.count() == 1
