"""Request every operation of the schema as each role, with a token of every scope.

The role limits what a token can do."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import resolve, reverse

from people import members
from people.models import Role
from tests import factories
from tests.api import api_clients
from tests.exports.url_cases import snapshot_file_args
from tests.people.personas import Personas, make_personas
from tests.prm.url_cases import prm_args
from tests.url_arguments import import_args

pytestmark = pytest.mark.django_db

OUTSIDE, READERS, OTHERS = ("stranger", "neighbour"), ("reviewer", "viewer"), ("engineer", "lead", "owner")
READ = {
    "get project",
    "get imports",
    "get import",
    "get bad_lines",
    "get traces",
    "get agreement",
    "post steer_traces",  # the action in the body needs its own role
}  # all other operations in a project are for engineers
FOR_LEADS = {"get groups", "put groups", "delete group", "get rules", "post rules", "delete rule", "get pay"}
IN_BODIES = {"post score_traces", "post rank_candidates"}  # the body names the project
OF_A_PRM = {"post push_scores", "get traces"}  # the query names it
Operation = tuple[str, str, str]  # name, method, URL


def operations(cast: Personas, **named: Any) -> Iterator[Operation]:
    values = {"slug": cast.project.slug, "job": 1, "name": "a", "file": "b", "rule": 1, **named}
    schema = Client().get(reverse("api:schema"), headers={"Accept": "application/json"}).json()
    for path, methods in schema["paths"].items():
        for method in methods:
            address = path.format(**values)
            if (name := resolve(address).url_name) not in {"projects", "security_events"}:
                yield f"{method} {name}", method, address


def ask(program: Client, cast: Personas, operation: Operation) -> int:
    """Roll back the changes of each request before the next one."""
    name, method, address = operation
    body: dict[str, Any] = {"project": cast.project.slug, "purpose": "rerank", "problem": "1", "candidates": [["2"]]}
    body["traces"] = [{"problem": "1", "steps": ["2"]}]
    with transaction.atomic():
        told = body if name in IN_BODIES else {}
        query = {"QUERY_STRING": "prm=1"} if name in OF_A_PRM else {}
        response = getattr(program, method)(address, told, content_type="application/json", **query)
        transaction.set_rollback(True)
    return int(response.status_code)


def test_every_operation_by_role() -> None:
    cast = make_personas()
    prm_args(cast)
    every = list(operations(cast))
    assert len(every) == 24
    for person in (*OUTSIDE, "annotator", *READERS, *OTHERS):
        program = api_clients.make_client(getattr(cast, person))
        met = {operation[0]: ask(program, cast, operation) for operation in every}
        if person in OUTSIDE:
            assert set(met.values()) == {404}
            continue
        let_in = {name for name, status in met.items() if status != 403}
        allowed = set(met) - FOR_LEADS if person == "engineer" else set(met)
        assert let_in == (set() if person == "annotator" else READ if person in READERS else allowed)
        assert max(met.values()) < 500


def test_former_member_gets_nothing() -> None:
    cast = make_personas()
    prm_args(cast)
    program = api_clients.make_client(cast.engineer)
    members.remove_member(membership=cast.membership(cast.engineer), by=cast.owner, now=factories.NOW)
    assert {ask(program, cast, operation) for operation in operations(cast)} == {404}
    cast.lead.is_active = False
    cast.lead.save()
    assert {ask(api_clients.make_client(cast.lead), cast, operation) for operation in operations(cast)} == {401}


def test_walk_finds_nothing_of_another_project() -> None:
    """Request objects of another project under one's own project, as a member of both."""
    cast, elsewhere = make_personas(), make_personas("other-")
    members.add_member(project=elsewhere.project, user=cast.owner, role=Role.LEAD, now=factories.NOW)
    prm_args(elsewhere)
    named = {"job": import_args(elsewhere)["job"], **snapshot_file_args(elsewhere)}
    program = api_clients.make_client(cast.owner)
    met = {}
    for operation in operations(cast, **{**named, "slug": cast.project.slug}):
        if operation[0].split()[1] in {"import", "bad_lines", "snapshot", "file", "push_scores", "traces"}:
            met[operation[0]] = ask(program, cast, operation)
    assert len(met) == 8
    assert set(met.values()) == {404}
