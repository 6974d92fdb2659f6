"""Odd values in forms, queries and messages never cause a server error."""

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

pytestmark = [pytest.mark.fault, pytest.mark.django_db]

PAGES = [name for name in URL_CASES if not name.startswith("api:")]
# The kinds of values that have caused errors.
WORDS = ["a\0b", "9" * 5000, "1" + "0" * 30, "²", "99999-12-31"]
# Valid values of forms with several fields. With all fields odd, the first error would hide the others.
FORMS: dict[str, dict[str, Any]] = {
    "account_login": {"login": "anna", "password": "seven green ladders"},
    "dashboard:erase_member": {"username": "annotator"},
    "dashboard:new_project": {"name": "N", "slug": "n", "protocol": "first_error", "overlap": 2},
    "dashboard:create_webhook": {"address": "http://127.0.0.1:9/", "kinds": "import.done"},
    "dashboard:choose_mail": {"mail": "import.done"},
    "dashboard:edit_overlap": {"overlap": 3, "overlap_limit": 6, "lease_minutes": 30, "confirmed": 1},
    "dashboard:rating_rules": {"negative": "Wrong.", "neutral": "Idle.", "positive": "Right.", "kinds": "Slip\nOther"},
    "dashboard:change_selection_rules": {
        "acquisition": "margin",
        "batch_size": 9,
        "temperature": 0.1,
        "domain_quota": 0.5,
        "gate_margin": 0.05,
    }
    | {"every_n_submissions": 5},
    "dashboard:register_prm": {"backend": "vllm", "model": "m", "digest": "d", "address": "http://127.0.0.1:1"}
    | {"style": "qwen", "semantics": "hazard", "secret": "s", "trained_on": ""},
    "dashboard:add_judge": {"name": "j", "family": "vllm", "address": "http://127.0.0.1:1", "model": "m", "key": "k"}
    | {"model_digest": "", "contract": "critic", "prompt": "{problem} {steps}", "n_votes": 2, "temperature": 0.5}
    | {"top_p": 1, "max_tokens": 9, "timeout": 9, "n_concurrent": 2, "prompt_price": 1, "completion_price": 1},
    "dashboard:add_rollouts": {"name": "j", "family": "vllm", "address": "http://127.0.0.1:1", "model": "m", "key": "k"}
    | {"model_digest": "", "prompt": "{problem} {prefix}", "n_votes": 2, "temperature": 0.5, "top_p": 1}
    | {"max_tokens": 9, "timeout": 9, "n_concurrent": 2, "prompt_price": 1, "completion_price": 1, "stop": "s"}
    | {"checker": "regex", "pattern": "(a)", "checker_address": "http://127.0.0.1:1", "search": "binary"}
    | {"threshold": 0.1, "separator": "space"},
    "dashboard:set_machine_budget": {"most_tokens": 9, "most_money": 1},
    "dashboard:order_snapshot": {"name": "x", "purpose": "archive", "formats": "trl", "ratings": "raters"}
    | {"ending": "jsonl", "neutral": "drop", "contested": "in", "gold": "in", "min_raters": 0, "generations": "1"}
    | {"submitted_from": "2026-01-01", "submitted_until": "2026-02-01", "validation": 10, "test": 10},
}
ALONE = ["a\0b", str(2**31), "9" * 19, "x" * 100_000]
ALONE_LIKE = {"http": "http://[", "20": "0001-01-01"}  # in place of an address, of a date
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
def words_asked_for(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Record the names that views read from forms and queries."""
    noted: set[str] = set()

    def noting(name: str) -> None:
        looks = getattr(QueryDict, name)

        def look(self: QueryDict, key: Any, *more: Any, **others: Any) -> Any:
            noted.add(str(key))
            return looks(self, key, *more, **others)

        monkeypatch.setattr(QueryDict, name, look)

    for name in ("get", "getlist", "__getitem__", "__contains__"):
        noting(name)
    return noted


@pytest.fixture
def fields_asked_for(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Record the fields that views read from messages; they ignore others."""
    noted: set[str] = set()
    decode = msgspec.json.decode

    def look(body: bytes, *, type: Any) -> Any:
        noted.update(type.__struct_fields__)
        return decode(body, type=type)

    monkeypatch.setattr("msgspec.json.decode", look)
    return noted


def inside(name: str, personas: LoggedInPersonas) -> tuple[Client, str]:
    """Return a client of a user with access to the URL."""
    door = URL_CASES[name]
    person = next((one for one in MEMBERS if door.answers[one] < 400), "annotator")
    return personas.client(person), reverse(name, kwargs=door.arguments(personas.cast))


def ask(client: Client, method: str, address: str, body: Any = None, *, at_most: int = 499, **more: Any) -> None:
    """Roll back the changes of each request before the next one. Server errors are raised here."""
    with transaction.atomic():
        response: Any = getattr(client, method)(address, body, **more)
        assert response.status_code <= at_most
        transaction.set_rollback(True)


@pytest.mark.parametrize("name", PAGES)
def test_odd_query_values_cause_no_error(name: str, personas: LoggedInPersonas, words_asked_for: set[str]) -> None:
    door, usual = URL_CASES[name], URL_CASES[name].body or {}
    client, address = inside(name, personas)
    ask(client, door.method, address, usual)
    names = sorted(words_asked_for | set(usual))
    for odd in WORDS if names else []:
        ask(client, door.method, address, dict.fromkeys(names, odd))
    for field in usual:
        ask(client, door.method, address, {other: value for other, value in usual.items() if other != field})


@pytest.mark.parametrize("name", FORMS)
def test_odd_form_values_cause_no_error(name: str, personas: LoggedInPersonas) -> None:
    client, address = personas.client("owner"), reverse(name, kwargs=URL_CASES[name].arguments(personas.cast))
    if name == "account_login":
        client.logout()
    meant = FORMS[name]
    ask(client, "post", address, meant, at_most=302)
    for field, value in meant.items():
        for odd in [*ALONE, *(others for start, others in ALONE_LIKE.items() if str(value).startswith(start))]:
            ask(client, "post", address, {**meant, field: odd})


@pytest.mark.parametrize("name", [name for name in PAGES if URL_CASES[name].method == "post"])
def test_odd_bodies_cause_no_error(name: str, personas: LoggedInPersonas) -> None:
    client, address = inside(name, personas)
    for kind, body in BODIES.items():
        ask(client, "post", address, body, content_type=kind)


@pytest.mark.parametrize("name", MESSAGES)
def test_odd_messages_cause_no_error(name: str, personas: LoggedInPersonas, fields_asked_for: set[str]) -> None:
    client, address = inside(name, personas)

    def say(message: dict[str, Any]) -> None:
        ask(client, "post", address, json.dumps(message), content_type="application/json")

    say(BATCH)
    passed_over = {*BATCH} - fields_asked_for
    for odd in ODD:
        say(BATCH | dict.fromkeys(passed_over, odd))
        for field in {*BATCH} - passed_over:
            say(BATCH | {field: odd})
        for field in WRITE if "writes" in fields_asked_for else []:
            say(BATCH | {"writes": [WRITE | {field: odd}]})
