"""Tokens, scopes and problem responses."""

import pytest
from django.test import Client
from django.urls import resolve, reverse
from drf_spectacular.validation import validate_schema

from accounts.models import ApiToken
from api.views import api_schema
from tests.api import api_clients
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}


def test_list_has_projects_that_the_user_may_read(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    found = api_clients.make_client(cast.engineer).get(reverse("api:projects")).json()
    assert [project["slug"] for project in found] == [cast.project.slug]
    for person in (cast.annotator, cast.stranger):
        assert api_clients.make_client(person).get(reverse("api:projects")).json() == []


@pytest.mark.parametrize(
    ("person", "status"),
    [("stranger", 404), ("neighbour", 404), ("annotator", 403), ("engineer", 200), ("reviewer", 200), ("owner", 200)],
)
def test_project_access_by_role(person: str, status: int, personas: LoggedInPersonas) -> None:
    cast = personas.cast
    response = api_clients.make_client(getattr(cast, person)).get(reverse("api:project", args=[cast.project.slug]))
    assert response.status_code == status
    if status != 200:
        assert api_clients.problem_detail(response)


def test_request_needs_a_valid_token_with_the_scope(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    address = reverse("api:project", args=[cast.project.slug])
    nothing = Client().get(address)
    assert nothing.status_code == 401
    assert nothing["WWW-Authenticate"] == "Bearer"
    assert "Authorization: Bearer" in api_clients.problem_detail(nothing)
    assert Client(headers={"Authorization": "Bearer wrong"}).get(address).status_code == 401
    lacking = api_clients.make_client(cast.engineer, "score").get(address)
    assert lacking.status_code == 403
    assert "“read”" in api_clients.problem_detail(lacking)
    program = api_clients.make_client(cast.engineer)
    ApiToken.objects.update(withdrawn_at="2026-01-01T00:00Z")
    assert program.get(address).status_code == 401


def test_expired_token_gets_a_problem_response(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    program = api_clients.make_client(cast.engineer)
    ApiToken.objects.update(made_at="2025-01-01T00:00Z", expires_at="2025-02-01T00:00Z")
    response = program.get(reverse("api:projects"))
    assert response.status_code == 401
    assert api_clients.problem_detail(response)


OPENS = {
    "read": {"projects", "project", "imports", "import", "bad_lines", "snapshots", "snapshot", "traces"}
    | {"agreement", "consensus", "groups", "rules", "pay", "judges", "judge_runs", "judge_run", "machine_budget"}
    | {"live_labeling", "machine_consensus", "machines", "passport", "licenses", "assisted_results", "suggestions"}
    | {"monitors", "taxonomy", "guideline"}
    | {"canaries", "passports", "hard_negatives", "consensus_routes"},
    "bring_in": {"post imports", "delete import", "post trace_steps"},
    "take_out": {"post snapshots", "delete snapshot", "file"},
    "score": {"post score_traces", "post rank_candidates", "post push_scores"},
    "judge": {"post judges", "post judge_runs", "delete judge_run", "post resume_judge_run", "put machine_budget"}
    | {"post passport", "post licenses", "post revoke_license", "post canaries", "post canary_scores"}
    | {"post consensus_routes", "post close_consensus_route"}
    | {"put suggestions", "delete suggestions", "put monitors", "delete monitors"},
    "guide": {"patch taxonomy", "put guideline"},
    "steer": {"post steer_traces", "put groups", "delete group", "post rules", "delete rule"},
}


@pytest.mark.parametrize("scope", OPENS)
@pytest.mark.fault
def test_scope_permits_only_its_operations(scope: str, personas: LoggedInPersonas) -> None:
    """Request every operation of the schema as the owner, with one scope."""
    cast = personas.cast
    program, values = (
        api_clients.make_client(cast.owner, scope),
        {"slug": cast.project.slug, "name": "a", "file": "b"}
        | dict.fromkeys(("job", "rule", "judge", "run", "rater", "license", "trace", "route"), 1),
    )
    opened = set()
    for path, operations in Client().get(reverse("api:schema"), headers=JSON).json()["paths"].items():
        for method in operations:
            name = resolve(address := path.format(**values)).url_name
            response = program.generic(method.upper(), address, b"{}", content_type="application/json")
            assert response.status_code < 500
            if response.status_code != 403:
                opened.add(name if method == "get" else f"{method} {name}")
    assert opened == OPENS[scope]


@pytest.mark.parametrize("method", ["get", "post", "options"])
def test_unknown_address_gets_a_problem_response(method: str, client: Client) -> None:
    response = getattr(client, method)(reverse("api:projects") + "/no/such/address")
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")


def test_browser_session_is_ignored(client: Client, personas: LoggedInPersonas) -> None:
    cast = personas.cast
    client.force_login(cast.engineer)
    assert client.get(reverse("api:project", args=[cast.project.slug])).status_code == 401


@pytest.mark.fault
def test_schema_is_valid_openapi() -> None:
    response = Client().get(reverse("api:schema"), headers=JSON)
    schema = response.json()
    assert schema["openapi"] == "3.1.0"
    validate_schema(schema)  # type: ignore[no-untyped-call]  # spectacular's own
    assert all("security" in operation for path in schema["paths"].values() for operation in path.values())


@pytest.mark.fault
def test_schema_is_generated_once_per_process() -> None:
    """To generate it takes a second, and strangers may request it as often as they like."""
    first = Client().get(reverse("api:schema"), headers=JSON)
    generated = api_schema.render_schema.cache_info().misses
    assert Client().get(reverse("api:schema"), headers=JSON).content == first.content
    assert api_schema.render_schema.cache_info().misses == generated
