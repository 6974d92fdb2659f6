"""Every refusal below /api/ is a problem document, whichever code refused the request."""

import io
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.exceptions import ParseError

from accounts import rate_limits
from api.json_parser import StrictJSONParser
from formats.strict_json import DEPTH_LIMIT
from tests.api import api_clients
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


def check(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    content: dict[str, Any] = json.loads(response.content)
    assert content["status"] == status
    assert content["type"]
    assert content["detail"]
    return content


def test_unknown_addresses_and_methods(personas: LoggedInPersonas) -> None:
    client = api_clients.make_client(personas.cast.owner)
    for address in ("/api/nothing", "/api/", "/api"):
        check(client.get(address), 404)
    check(client.get("/api/projects/no such slug"), 404)
    check(Client().get("/api/projects/x/imports/999999999999999999999999999999"), 401)
    project = personas.cast.project.slug
    check(client.get(reverse("api:agreement", args=[project]), {"only": "a\0"}), 422)
    check(client.delete(reverse("api:group", args=[project, "a\0"])), 404)
    refused = client.delete(reverse("api:project", args=[personas.cast.project.slug]))
    check(refused, 405)
    assert refused.headers["Allow"]
    check(client.post("/api/schema"), 405)


def test_bodies_that_are_too_large_or_of_another_type(personas: LoggedInPersonas) -> None:
    client = api_clients.make_client(personas.cast.owner)
    address = reverse("api:score_traces")
    check(client.post(address, b"x" * 40_000_000, content_type="application/json"), 413)
    check(client.post(address, b"<a/>", content_type="application/xml"), 415)
    check(client.post(address, b"{", content_type="application/json"), 400)


@pytest.mark.parametrize("mark", ["[]", '{"a":}'])
def test_limit_of_nesting_is_exact(mark: str) -> None:
    def parse(depth: int) -> object:
        return StrictJSONParser().parse(io.BytesIO(f"{mark[:-1] * depth}1{mark[-1] * depth}".encode()))

    assert parse(DEPTH_LIMIT)
    with pytest.raises(ParseError):
        parse(DEPTH_LIMIT + 1)


@pytest.mark.fault
def test_too_many_requests(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RATE_LIMIT_FACTOR = 1
    monkeypatch.setitem(rate_limits.LIMITS, "api_anonymous", (rate_limits.Limit("address", 1, 3600),))
    client = Client(REMOTE_ADDR="192.0.2.77")
    address = reverse("api:schema")
    client.get(address)
    response = client.get(address)
    check(response, 429)
    assert int(response.headers["Retry-After"]) > 0


def test_refusals_of_the_middleware(personas: LoggedInPersonas) -> None:
    check(Client().get("/api/projects", headers={"Host": "evil.example"}), 400)


@pytest.mark.urls("tests.attacks.broken_urls")
def test_unexpected_errors_tell_nothing(personas: LoggedInPersonas) -> None:
    client = personas.client("owner")
    client.raise_request_exception = False
    assert "hunter2" not in json.dumps(check(client.get("/api/broken"), 500))
