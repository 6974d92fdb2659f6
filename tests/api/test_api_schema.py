"""Responses to requests that schemathesis makes from the OpenAPI schema are those of the schema.

By default, the owner sends a few requests to each operation. With API_SCHEMA_SECONDS=600, all roles send requests, for
that long in all.
"""

import collections
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from django.utils import timezone
from hypothesis import strategies
from schemathesis import GenerationMode, checks
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok

from accounts import tokens
from accounts.models import Scope, User
from tests.exports.url_cases import snapshot_file_args
from tests.machines.url_cases import license_args, make_run
from tests.people.personas import MEMBERS, LoggedInPersonas
from tests.prm.url_cases import prm_args
from tests.url_arguments import import_args

SECONDS = float(os.environ.get("API_SCHEMA_SECONDS", "0"))
pytestmark = [pytest.mark.django_db, pytest.mark.fault, pytest.mark.timeout(600 + SECONDS)]
SHORT_SECONDS, SHORT_EXAMPLES, LONG_EXAMPLES = 15, 2, 30
CHECKS = ("content_type_conformance", "response_headers_conformance", "response_schema_conformance")
Failures = dict[str, collections.Counter[str]]


@pytest.fixture
def application() -> Iterator[Any]:
    """The platform as a WSGI application that stays in the transaction of the test."""
    handle = get_wsgi_application()

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        return handle({**environ, "REMOTE_ADDR": "127.0.0.1"}, start_response)

    senders = (request_started, request_finished)
    for sender in senders:
        sender.disconnect(close_old_connections)
    yield answer
    for sender in senders:
        sender.connect(close_old_connections)


@schemathesis.serializer("application/x-ndjson")
def encode_lines(_context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def make_arguments(personas: LoggedInPersonas) -> dict[str, Any]:
    """Return values of path parameters that lead to existing rows."""
    run, cast = make_run(personas.cast), personas.cast
    prm_args(cast)
    numbers = {"judge": run.judge_id, "run": run.pk, "job": import_args(cast)["job"]}
    numbers |= {"rater": run.judge.rater_id, "license": license_args(cast)["license"]}
    return {**numbers, **snapshot_file_args(cast)}


def find_failures(case: Any, secret: str) -> list[str]:
    """Send a request, undo what it changed, and return how the response differs from the schema."""
    with transaction.atomic():
        response = case.call(headers={"Authorization": f"Bearer {secret}"})
        transaction.set_rollback(True)
    status, kind = response.status_code, response.headers.get("content-type", [""])[0]
    found = []
    if status >= 500:
        found.append(f"{status}")
    if status >= 400 and kind != "application/problem+json":
        found.append(f"{status} as {kind}")
    if status < 400 and str(status) not in case.operation.definition.raw["responses"]:
        found.append(f"{status} is not documented")
    for name in CHECKS:
        try:
            case.validate_response(response, checks=[checks.CHECKS.get_one(name)])
        except FailureGroup as group:
            found += [f"{status} {name}: {error}"[:300] for error in group.exceptions]
    return found


def send_requests(operation: Any, arguments: dict[str, Any], secret: str, ends_at: float, failures: Failures) -> int:
    """Send valid and invalid requests to one operation, some to existing rows, and return how many."""
    n_sent = 0
    for mode in GenerationMode if time.monotonic() < ends_at else ():

        @hypothesis.settings(
            max_examples=LONG_EXAMPLES if SECONDS else SHORT_EXAMPLES,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy(mode), odd=strategies.sampled_from(["", "", *arguments]))
        def send(case: Any, odd: str) -> None:
            nonlocal n_sent
            for name in arguments.keys() & case.path_parameters.keys() - {odd}:
                case.path_parameters[name] = arguments[name]
            if time.monotonic() < ends_at:
                n_sent += 1
                failures[operation.label].update(find_failures(case, secret))

        send()
    return n_sent


def test_responses_are_those_of_the_schema(personas: LoggedInPersonas, application: Any, record_property: Any) -> None:
    cast = personas.cast
    User.objects.filter(pk=cast.owner.pk).update(is_staff=True)
    arguments = {**make_arguments(personas), "slug": cast.project.slug}
    checks.load_all_checks()
    found = schemathesis.openapi.from_wsgi("/api/schema", application).get_all_operations()
    operations = [each.ok() for each in found if isinstance(each, Ok)]
    assert len(operations) > 30
    failures: Failures = collections.defaultdict(collections.Counter)
    sent = collections.Counter[str]()
    people = MEMBERS if SECONDS else ("owner",)
    for person in people:
        user = User.objects.get(pk=getattr(cast, person).pk)
        _, secret = tokens.create_api_token(user=user, name="x", scopes=tuple(Scope), lasts=None, now=timezone.now())
        ends_at = time.monotonic() + (SECONDS or SHORT_SECONDS) / len(people)
        is_first = True
        while is_first or (SECONDS and time.monotonic() < ends_at):
            is_first = False
            random.shuffle(operations)
            for operation in operations:
                sent[person] += send_requests(operation, arguments, secret, ends_at, failures)
    record_property("requests", dict(sent))
    assert {name: dict(found) for name, found in failures.items() if found} == {}
    assert sent["owner"] > 0
