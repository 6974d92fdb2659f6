"""Send invalid forms, queries and JSON to every page. None may cause a server error."""

import json
from typing import Any

import msgspec
import pytest
from django.db import transaction
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from tests.people.personas import MEMBERS, LoggedInPersonas
from tests.test_permissions import URL_CASES

pytestmark = pytest.mark.django_db

PAGES = [name for name in URL_CASES if not name.startswith("api:")]
# The kinds of values that have ever broken a page, out of many more that were tried.
VALUES = ["a\0b", "9" * 5000, "1" + "0" * 30, "²", "99999-12-31"]
# Valid forms with several fields. If all fields are invalid, only the first is checked, so one is replaced at a time.
FORMS: dict[str, dict[str, Any]] = {
    "account_login": {"login": "anna", "password": "seven green ladders"},
    "dashboard:new_project": {"name": "N", "slug": "n", "protocol": "first_error", "overlap": 2},
    "dashboard:edit_overlap": {"overlap": 3, "overlap_limit": 6, "lease_minutes": 30, "confirmed": 1},
    "dashboard:change_selection_rules": {
        "acquisition": "margin",
        "batch_size": 9,
        "temperature": 0.1,
        "domain_quota": 0.5,
    }
    | {"every_n_submissions": 5},
    "dashboard:register_prm": {"backend": "vllm", "model": "m", "digest": "d", "address": "http://127.0.0.1:1"}
    | {"style": "qwen", "semantics": "hazard", "secret": "s", "trained_on": ""},
    "dashboard:order_snapshot": {"name": "x", "purpose": "archive", "formats": "trl", "ratings": "raters"}
    | {"ending": "jsonl", "neutral": "drop", "contested": "in", "gold": "in", "min_raters": 0, "generations": "1"}
    | {"submitted_from": "2026-01-01", "submitted_until": "2026-02-01", "validation": 10, "test": 10},
}
SINGLE_VALUES = ["a\0b", str(2**31), "9" * 19, "http://[", "0001-01-01", "x" * 100_000]
MESSAGES = [
    f"annotate:{name}"
    for name in ("record", "submit", "give_up", "report", "skip", "reopen", "discard", "open", "claim")
]
ODD: list[Any] = [None, -1, 10**30, 2**40, 1e308, "\0", "\ud800", "x" * 90_000, [None], {}, "9999-12-31T23:59Z"]
WRITE = {"sequence": 1, "seen": 0, "kind": "rate", "step": 0, "rating": 1, "option": None, "flagged": None}
WRITE |= {"category": "", "text": "", "active_ms": 1, "made_at": None}
BATCH = {"client": "c", "writes": [WRITE], "reason": "because", "revision": 1, "active_ms": 5, "opened": True}
BODIES = {
    "application/json": b"[" * 100_000,
    "multipart/form-data": b"--x",
    "multipart/form-data; boundary=x": b"--x\r\nContent-Disp",
    "application/x-www-form-urlencoded": b"%ff=%00&=&&;" + b"a&" * 1500,
}


@pytest.fixture
def recorded_names(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Record the names that views read from forms and queries."""
    recorded: set[str] = set()

    def record_reads(name: str) -> None:
        original = getattr(QueryDict, name)

        def read(self: QueryDict, key: Any, *more: Any, **others: Any) -> Any:
            recorded.add(str(key))
            return original(self, key, *more, **others)

        monkeypatch.setattr(QueryDict, name, read)

    for name in ("get", "getlist", "__getitem__", "__contains__"):
        record_reads(name)
    return recorded


@pytest.fixture
def recorded_fields(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Record the fields that views decode from JSON; they ignore all others."""
    recorded: set[str] = set()
    decode = msgspec.json.decode

    def record_fields(body: bytes, *, type: Any) -> Any:
        recorded.update(type.__struct_fields__)
        return decode(body, type=type)

    monkeypatch.setattr("msgspec.json.decode", record_fields)
    return recorded


def allowed_request(name: str, personas: LoggedInPersonas) -> tuple[Client, str]:
    """Return a client of a person with access to the URL, and the URL."""
    case = URL_CASES[name]
    person = next((one for one in MEMBERS if case.answers[one] < 400), "annotator")
    return personas.client(person), reverse(name, kwargs=case.arguments(personas.cast))


def send(client: Client, method: str, address: str, body: Any = None, *, at_most: int = 499, **more: Any) -> None:
    """Send a request and roll back its changes. The test client raises a server error as its exception."""
    with transaction.atomic():
        response: Any = getattr(client, method)(address, body, **more)
        assert response.status_code <= at_most
        transaction.set_rollback(True)


@pytest.mark.parametrize("name", PAGES)
def test_invalid_form_and_query_values_cause_no_error(
    name: str, personas: LoggedInPersonas, recorded_names: set[str]
) -> None:
    case, usual = URL_CASES[name], URL_CASES[name].body or {}
    client, address = allowed_request(name, personas)
    send(client, case.method, address, usual)
    names = sorted(recorded_names | set(usual))
    for odd in VALUES if names else []:
        send(client, case.method, address, dict.fromkeys(names, odd))
    for field in usual:
        send(client, case.method, address, {other: value for other, value in usual.items() if other != field})


@pytest.mark.parametrize("name", FORMS)
def test_one_invalid_field_of_a_form_causes_no_error(name: str, personas: LoggedInPersonas) -> None:
    client, address = personas.client("owner"), reverse(name, kwargs=URL_CASES[name].arguments(personas.cast))
    if name == "account_login":
        client.logout()
    valid = FORMS[name]
    send(client, "post", address, valid, at_most=302)
    for field in valid:
        for odd in SINGLE_VALUES:
            send(client, "post", address, {**valid, field: odd})


@pytest.mark.parametrize("name", [name for name in PAGES if URL_CASES[name].method == "post"])
def test_malformed_bodies_cause_no_error(name: str, personas: LoggedInPersonas) -> None:
    client, address = allowed_request(name, personas)
    for kind, body in BODIES.items():
        send(client, "post", address, body, content_type=kind)


@pytest.mark.parametrize("name", MESSAGES)
def test_invalid_messages_cause_no_error(name: str, personas: LoggedInPersonas, recorded_fields: set[str]) -> None:
    client, address = allowed_request(name, personas)

    def send_message(message: dict[str, Any]) -> None:
        send(client, "post", address, json.dumps(message), content_type="application/json")

    send_message(BATCH)
    ignored = {*BATCH} - recorded_fields
    for odd in ODD:
        send_message(BATCH | dict.fromkeys(ignored, odd))
        for field in {*BATCH} - ignored:
            send_message(BATCH | {field: odd})
        for field in WRITE if "writes" in recorded_fields else []:
            send_message(BATCH | {"writes": [WRITE | {field: odd}]})
