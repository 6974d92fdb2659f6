"""List traces for a scorer, page by page, and push their scores."""

import os
import subprocess
import sys
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from accounts import tokens
from accounts.models import Scope, User
from labeling.models import Project, Trace
from people import members
from people.models import Role
from prm import generations, registry, scores
from prm.models import Generation
from prm.registry import PRMIdentity
from tests import factories
from tests.api import api_clients
from tests.conventions.rule import ROOT
from tests.prm import generation_project

pytestmark = pytest.mark.django_db


def add_engineer(project: Project) -> User:
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ENGINEER, now=factories.NOW)
    return user


def test_pages_have_every_scorable_trace_once() -> None:
    project, other = factories.make_project(), factories.make_project()
    traces = [factories.make_trace(project) for _ in range(5)]
    factories.make_trace(other)
    Trace.objects.filter(pk=traces[1].pk).update(withdrawn_at=factories.NOW)
    client, address = api_clients.make_client(add_engineer(project)), reverse("api:traces", args=[project.slug])
    found: list[dict[str, Any]] = []
    cursor, sizes = 0, []
    while cursor is not None:
        page = client.get(address, {"cursor": cursor, "limit": 2}).json()
        found, cursor = found + page["traces"], page["next_cursor"]
        sizes.append(len(page["traces"]))
    assert [each["id"] for each in found] == [trace.pk for trace in traces if trace != traces[1]]
    assert sizes == [2, 2, 0]
    first = found[0]
    assert first["digest"] == traces[0].digest
    assert first["problem"] == traces[0].problem.text
    assert [set(step) for step in first["steps"]] == [{"text", "is_rateable"}] * traces[0].n_steps


def test_list_of_a_prm_has_the_traces_that_it_has_not_scored() -> None:
    project = factories.make_project()
    one, two = factories.make_trace(project), factories.make_trace(project)
    identity = PRMIdentity("pushed", "m")
    prm = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    client, address = api_clients.make_client(add_engineer(project)), reverse("api:traces", args=[project.slug])
    line = b'{"trace": %d, "scores": [1, 1, 1]}' % one.pk
    scores.push_scores(prm=prm, lines=[line], by=None, now=factories.NOW)
    assert [each["id"] for each in client.get(address, {"prm": prm.version}).json()["traces"]] == [two.pk]
    assert client.get(address, {"prm": 7}).status_code == 404
    for odd in ({"limit": 501}, {"cursor": "x"}, {"cursor": 2**63}, {"prm": 2**31}, {"offset": 3}):
        assert client.get(address, odd).status_code == 422


def test_number_of_queries_does_not_grow_with_the_page(django_assert_max_num_queries: object) -> None:
    project = factories.make_project()
    client, address = api_clients.make_client(add_engineer(project)), reverse("api:traces", args=[project.slug])
    for _ in range(6):
        factories.make_trace(project)
    with django_assert_max_num_queries(11):  # type: ignore[operator]  # a fixture without a type
        assert len(client.get(address).json()["traces"]) == 6


@pytest.mark.django_db(transaction=True)
@pytest.mark.fault
def test_example_of_the_guide_pushes_the_scores_by_which_a_generation_is_evaluated(live_server: LiveServer) -> None:
    project = generation_project.make_project(labeled=60, unread=60)
    prm = registry.register_prm(project=project, identity=PRMIdentity("pushed", "mine"), by=None, now=factories.NOW)
    _, token = tokens.create_api_token(
        user=add_engineer(project), name="p", scopes=(Scope.READ, Scope.SCORE), lasts=None, now=timezone.now()
    )
    program = [sys.executable, str(ROOT / "docs" / "push_scores.py"), project.slug, str(prm.version)]
    environment = {**os.environ, "STEPMARK": str(live_server.url), "TOKEN": token}
    for expected in ("100 added, 0 bad\n20 added, 0 bad\n", ""):
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == expected
    generations.start_generation(project=project, by=None, now=factories.NOW, candidate=prm)
    generation_project.run_jobs()
    generation = Generation.objects.get(project=project)
    assert generation.verdict == "accepted"
    assert generation.gate["counts"]["traces"] > 10
    assert generation.n_policy + generation.n_uniform > 0
