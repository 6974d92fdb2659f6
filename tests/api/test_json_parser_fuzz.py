"""Every request gets a regular response or a problem document."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api import json_parser
from exports import snapshots
from exports.models import Snapshot
from labeling.datasets.selection import ManifestFilters
from tests import factories
from tests.api import api_clients
from tests.labeling.quality import submitted_work
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = [pytest.mark.fault, pytest.mark.django_db]

NUL = "\0"
ODD: list[Any] = [
    *(None, True, -1, 10**30, 1e308, "", NUL, "\ud800", "x" * 3000, "99999-01-01T00:00:00Z"),
    *([None], [10**30], ["\ud800"], {NUL: NUL}),
]
NUMBERS = ["9" * 600, "1" + "0" * 30, "9223372036854775808", "-1", "\0", "²", "1e5", "x"]
DEEP = [b"[" * 100_000, b'{"a":' * 50_000]
BYTES = [b"null", b"[]", b'"x"', b"{", b"\xff\xfe", b"\0", b'{"a":NaN}', b'{"formats":Infinity}', *DEEP]


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    submitted_work.submit_trace(factories.make_rater(cast.project), factories.make_trace(cast.project), [1, -1])
    return cast


def doors(cast: Personas) -> dict[str, dict[str, Any]]:
    """Operations with a JSON body, each with a valid document."""
    slug = cast.project.slug
    filters = dict.fromkeys(ManifestFilters.__struct_fields__)
    rule = {"neutral": "drop", "human_steps": "omit", "has_alternatives": True}
    order: dict[str, Any] = {
        "name": "a",
        "purpose": "archive",
        "formats": ["trl"],
        "ending": "jsonl",
        "filters": filters,
        "rule": rule,
    }
    numbers: dict[str, Any] = {
        "validation": 0.1,
        "test": 0,
        "without_duplicates": True,
        "taken_in": [],
        "reason": "",
        "deliver_to": [],
    }
    trace = {"problem": "1 + 1", "steps": ["2"]}
    return {
        reverse("api:snapshots", args=[slug]): order | numbers,
        reverse("api:score_traces"): {"project": slug, "purpose": "rerank", "traces": [trace]},
        reverse("api:rank_candidates"): {"project": slug, "purpose": "rerank", "problem": "1", "candidates": [["2"]]},
    }


def see(response: Any) -> int:
    """Check that the response is regular or a problem document."""
    if response.status_code >= 400:
        assert response.status_code < 500
        assert api_clients.problem_detail(response)
    return int(response.status_code)


def post(program: Client, address: str, body: Any) -> int:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return see(program.post(address, data, content_type="application/json"))


def test_json_with_an_odd_value_is_accepted_or_refused(cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    for address, meant in doors(cast).items():
        for field in meant:
            for value in ODD:
                post(program, address, {**meant, field: value})
    for part in ("filters", "rule"):
        address, meant = next(iter(doors(cast).items()))
        for field in meant[part]:
            for number, value in enumerate(ODD):
                post(program, address, {**meant, "name": f"{field}-{number}", part: {field: value}})


def test_accepted_orders_can_be_read(cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    address, meant = next(iter(doors(cast).items()))
    for number, value in enumerate(ODD):
        post(program, address, {**meant, "name": f"n-{number}", "filters": {"domains": value, "labelers": value}})
    for made in Snapshot.objects.all():
        assert program.get(reverse("api:snapshot", args=[cast.project.slug, made.name])).json()["state"] == "building"
        assert list(snapshots.prepare_snapshot(made, enqueue=False)) is not None


@pytest.mark.parametrize("body", BYTES, ids=lambda body: str(body[:8]))
def test_invalid_bytes_are_refused(cast: Personas, body: bytes) -> None:
    program = api_clients.make_client(cast.engineer)
    for address in doors(cast):
        assert post(program, address, body) in {400, 422}


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists, max_leaves=6))
def test_any_json_gets_a_response(cast: Personas, value: Any) -> None:
    program = api_clients.make_client(cast.engineer)
    for address, meant in doors(cast).items():
        post(program, address, value)
        for field in meant:
            post(program, address, {**meant, field: value})


def test_escaped_backslash_is_not_a_nul(cast: Personas) -> None:
    meant = doors(cast)[reverse("api:score_traces")]
    for text, status in ((r"\u0000", 409), ("\0", 400), ("\\\0", 400)):
        traces = [{"problem": text, "steps": []}]
        assert (
            post(api_clients.make_client(cast.engineer), reverse("api:score_traces"), {**meant, "traces": traces})
            == status
        )


def test_oversized_json_is_refused(cast: Personas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_parser, "MAX_BODY_BYTES", 1000)
    for address in doors(cast):
        assert post(api_clients.make_client(cast.engineer), address, b" " * 1001) == 413


def test_odd_url_parameters_get_a_response(cast: Personas) -> None:
    program, project = api_clients.make_client(cast.engineer), reverse("api:project", args=[cast.project.slug])
    for odd in (quote(number) for number in NUMBERS):
        for tail in (f"imports/{odd}", f"imports/{odd}/bad-lines", f"snapshots/{odd}", f"snapshots/a/files/{odd}"):
            assert program.get(f"{project}/{tail}").status_code == 404
        assert program.delete(f"{project}/imports/{odd}").status_code == 404
        scores = program.post(f"{project}/scores?prm={odd}", b"{}", content_type="application/x-ndjson")
        assert see(scores) == (422 if odd == "%00" else 404)


def test_odd_query_values_get_a_response(cast: Personas) -> None:
    program, address = api_clients.make_client(cast.engineer), reverse("api:imports", args=[cast.project.slug])
    for field in ("name", "format", "segmenter", "labels", "labels_by", "purpose", "licence", "statement"):
        for odd in ("%00", "%ED%A0%80", "..%2F..%2Fx", "%2F", "..", "%0A", "9" * 300, "x.zst", "x.parquet"):
            see(program.post(f"{address}?{field}={odd}", b'{"problem":"a","steps":["b"]}', content_type="text/plain"))
    assert program.get(reverse("api:schema") + "?version=%00&lang=%00").status_code == 200


def test_unsupported_methods_are_refused_and_head_follows_get(cast: Personas) -> None:
    program = api_clients.make_client(cast.engineer)
    readable = reverse("api:imports", args=[cast.project.slug])
    assert program.head(readable).status_code == 200
    for address in (readable, reverse("api:score_traces"), reverse("api:project", args=[cast.project.slug])):
        for method in ("OPTIONS", "PUT", "PATCH", "TRACE"):
            assert see(program.generic(method, address)) == 405


def test_schema_describes_problems(client: Client) -> None:
    told = client.get(reverse("api:schema"), headers={"accept": "application/json"}).json()
    for operations in told["paths"].values():
        for operation in operations.values():
            assert {"401", "403", "404", "default"} <= set(operation["responses"])
