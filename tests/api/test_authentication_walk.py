"""Request every operation of the schema as each role, with a token of every scope.

The role limits what a token can do."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import resolve, reverse

from accounts.models import Scope, User
from labeling.models import RaterGroup
from people import members
from people.models import Role
from tests import factories
from tests.api import api_clients
from tests.dashboard.url_cases import rule_args
from tests.exports.url_cases import snapshot_file_args
from tests.machines.url_cases import license_args, make_run, route_args
from tests.people.personas import LoggedInPersonas, Personas, make_personas
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
    "get consensus",
    "get judges",
    "get passports",
    "get canaries",
    "get consensus_routes",
    "get judge_runs",
    "get judge_run",
    "get machine_budget",
    "get live_labeling",
    "get machine_consensus",
    "get machines",
    "get passport",
    "get licenses",
    "get suggestions",
    "get monitors",
    "get taxonomy",
    "get guideline",
    "post steer_traces",  # the action in the body needs its own role
}  # all other operations in a project are for engineers
FOR_LEADS = {"get groups", "put groups", "delete group", "get rules", "post rules", "delete rule", "get pay"}
FOR_LEADS |= {"post licenses", "post revoke_license", "put suggestions", "delete suggestions"}
FOR_LEADS |= {"put monitors", "delete monitors", "patch taxonomy", "put guideline"}
FOR_LEADS |= {"post consensus_routes", "post close_consensus_route"}
IN_BODIES = {"post score_traces", "post rank_candidates"}  # the body names the project
OF_A_PRM = {"post push_scores", "get traces"}  # the query names it
# Operations whose URL or query has the number or the name of a row.
OF_ROWS = {"import", "bad_lines", "snapshot", "file", "push_scores", "traces", "rule", "judge_runs", "judge_run"}
OF_ROWS |= {"resume_judge_run", "passport", "passports", "licenses", "revoke_license", "trace_steps"}
OF_ROWS |= {"close_consensus_route"}
Operation = tuple[str, str, str]  # name, method, URL


def operations(cast: Personas, **named: Any) -> Iterator[Operation]:
    values = {"slug": cast.project.slug, "name": "a", "file": "b", **named}
    values = dict.fromkeys(("job", "rule", "judge", "run", "rater", "license", "trace", "route"), 1) | values
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


@pytest.mark.fault
def test_every_operation_by_role(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    prm_args(cast)
    every = list(operations(cast))
    assert len(every) == 62
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


@pytest.mark.fault
def test_former_member_gets_nothing(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    prm_args(cast)
    program = api_clients.make_client(cast.engineer)
    members.remove_member(membership=cast.membership(cast.engineer), by=cast.owner, now=factories.NOW)
    assert {ask(program, cast, operation) for operation in operations(cast)} == {404}
    cast.lead.is_active = False
    cast.lead.save()
    assert {ask(api_clients.make_client(cast.lead), cast, operation) for operation in operations(cast)} == {401}


@pytest.mark.fault
def test_walk_finds_nothing_of_another_project(personas: LoggedInPersonas) -> None:
    """Request objects of another project under one's own project, as a member of both."""
    cast, elsewhere = personas.cast, make_personas("other-")
    members.add_member(project=elsewhere.project, user=cast.owner, role=Role.LEAD, now=factories.NOW)
    prm_args(elsewhere)
    run = make_run(elsewhere)
    numbers = {"job": import_args(elsewhere)["job"], "judge": run.judge_id, "run": run.pk, **rule_args(elsewhere)}
    numbers |= {"rater": run.judge.rater_id, "license": license_args(elsewhere)["license"], **route_args(elsewhere)}
    named = {**numbers, **snapshot_file_args(elsewhere), "slug": cast.project.slug}
    program = api_clients.make_client(cast.owner)
    every = [operation for operation in operations(cast, **named) if operation[0].split()[1] in OF_ROWS]
    group = RaterGroup.objects.create(project=elsewhere.project, name="Geometry", made_at=factories.NOW)
    every.append(("delete group", "delete", reverse("api:group", args=[cast.project.slug, group.name])))
    assert {name.split()[1] for name, *_ in every} == OF_ROWS | {"group"}
    met = {operation[0]: ask(program, cast, operation) for operation in every}
    assert {name: status for name, status in met.items() if status != 404} == {}


SCOPES = {
    "post rank_candidates": "score",
    "post score_traces": "score",
    "get projects": "read",
    "get project": "read",
    "get agreement": "read",
    "get consensus": "read",
    "get groups": "read",
    "put groups": "steer",
    "delete group": "steer",
    "get imports": "read",
    "post imports": "bring_in",
    "get import": "read",
    "delete import": "bring_in",
    "get bad_lines": "read",
    "get pay": "read",
    "get rules": "read",
    "post rules": "steer",
    "delete rule": "steer",
    "post push_scores": "score",
    "get snapshots": "read",
    "post snapshots": "take_out",
    "get snapshot": "read",
    "delete snapshot": "take_out",
    "get file": "take_out",
    "get traces": "read",
    "post steer_traces": "steer",
    "post trace_steps": "bring_in",
    "get security_events": "audit",
    "get judges": "read",
    "post judges": "judge",
    "get judge_runs": "read",
    "post judge_runs": "judge",
    "get judge_run": "read",
    "delete judge_run": "judge",
    "post resume_judge_run": "judge",
    "get machine_budget": "read",
    "get live_labeling": "read",
    "get machine_consensus": "read",
    "put machine_budget": "judge",
    "get machines": "read",
    "get passport": "read",
    "get passports": "read",
    "get canaries": "read",
    "post canaries": "judge",
    "post canary_scores": "judge",
    "get hard_negatives": "read",
    "get consensus_routes": "read",
    "post consensus_routes": "judge",
    "post close_consensus_route": "judge",
    "post passport": "judge",
    "get licenses": "read",
    "get suggestions": "read",
    "get monitors": "read",
    "put monitors": "judge",
    "get taxonomy": "read",
    "patch taxonomy": "guide",
    "get guideline": "read",
    "put guideline": "guide",
    "delete monitors": "judge",
    "put suggestions": "judge",
    "delete suggestions": "judge",
    "post licenses": "judge",
    "post revoke_license": "judge",
    "get assisted_results": "read",
}


@pytest.mark.fault
def test_every_operation_by_scope(personas: LoggedInPersonas) -> None:
    """An owner and operator is refused by every operation for which the token has only another scope."""
    cast = personas.cast
    prm_args(cast)
    User.objects.filter(pk=cast.owner.pk).update(is_staff=True)
    every = list(operations(cast))
    every += [(f"get {name}", "get", reverse(f"api:{name}")) for name in ("projects", "security_events")]
    assert {name for name, *_ in every} == set(SCOPES)
    owner = User.objects.get(pk=cast.owner.pk)
    for scope in Scope:
        program = api_clients.make_client(owner, scope.value)
        admitted = {operation[0] for operation in every if ask(program, cast, operation) != 403}
        assert admitted == {name for name, needed in SCOPES.items() if needed == scope}
