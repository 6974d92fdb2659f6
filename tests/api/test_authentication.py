"""Who gets in with a token, and how the API says no."""

import pytest
from django.test import Client
from django.urls import reverse
from drf_spectacular.validation import validate_schema

from accounts.models import ApiToken
from tests.api import programs
from tests.people.cast import make_cast

pytestmark = pytest.mark.django_db


def test_projects_are_those_that_the_person_may_read() -> None:
    cast = make_cast()
    found = programs.of(cast.engineer).get(reverse("api:projects")).json()
    assert [project["slug"] for project in found] == [cast.project.slug]
    for person in (cast.annotator, cast.stranger):
        assert programs.of(person).get(reverse("api:projects")).json() == []


@pytest.mark.parametrize(
    ("person", "status"),
    [("stranger", 404), ("neighbour", 404), ("annotator", 403), ("engineer", 200), ("reviewer", 200), ("owner", 200)],
)
def test_project_is_found_by_its_members_and_read_by_role(person: str, status: int) -> None:
    cast = make_cast()
    response = programs.of(getattr(cast, person)).get(reverse("api:project", args=[cast.project.slug]))
    assert response.status_code == status
    if status != 200:
        assert programs.problem(response)


def test_token_must_be_there_work_and_have_the_scope() -> None:
    cast = make_cast()
    address = reverse("api:project", args=[cast.project.slug])
    nothing = Client().get(address)
    assert nothing.status_code == 401
    assert nothing["WWW-Authenticate"] == "Bearer"
    assert "Authorization: Bearer" in programs.problem(nothing)
    assert Client(headers={"Authorization": "Bearer wrong"}).get(address).status_code == 401
    lacking = programs.of(cast.engineer, "score").get(address)
    assert lacking.status_code == 403
    assert "“read”" in programs.problem(lacking)
    program = programs.of(cast.engineer)
    ApiToken.objects.update(withdrawn_at="2026-01-01T00:00Z")
    assert program.get(address).status_code == 401


def test_session_of_a_browser_counts_for_nothing(client: Client) -> None:
    cast = make_cast()
    client.force_login(cast.engineer)
    assert client.get(reverse("api:project", args=[cast.project.slug])).status_code == 401


def test_schema_is_valid_openapi() -> None:
    response = Client().get(reverse("api:schema"), headers={"Accept": "application/json"})
    schema = response.json()
    assert schema["openapi"] == "3.1.0"
    validate_schema(schema)  # type: ignore[no-untyped-call]  # spectacular's own
    assert all("security" in operation for path in schema["paths"].values() for operation in path.values())
