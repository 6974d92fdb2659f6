"""Scoring, ranking and score uploads over HTTP."""

import json
from typing import Any

import pytest
from django.urls import reverse

from labeling.models import Project
from people import members
from people.models import Role
from prm import registry, scores
from prm.models import PRM, PRMUsage, Score
from prm.registry import PRMIdentity
from tests import factories
from tests.api import api_clients
from tests.prm import generation_project

pytestmark = pytest.mark.django_db
SUMS = ["Then we add: 3 + 4 = 7.", "Perhaps we add: 7 + 2 = 10."]
RIGHT = ["Then we add: 3 + 4 = 7.", "Then we add: 7 + 2 = 9."]


def program_of(project: Project) -> Any:
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ENGINEER, now=factories.NOW)
    return api_clients.make_client(user)


def pushed(project: Project) -> PRM:
    return registry.register_prm(project=project, identity=PRMIdentity("pushed", "cluster"), by=None, now=factories.NOW)


def push(program: Any, prm: PRM, *lines: Any) -> Any:
    body = b"\n".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in lines)
    address = reverse("api:push_scores", args=[prm.project.slug]) + f"?prm={prm.version}"
    return program.post(address, body, content_type="application/x-ndjson")


@pytest.mark.fault
def test_current_prm_scores_and_ranks_and_calls_are_counted() -> None:
    project = generation_project.make_project(labeled=120, unread=5)
    program = program_of(project)
    asked = {"project": project.slug, "purpose": "flag", "traces": [{"problem": "Add up.", "steps": SUMS}]}
    score, rank = reverse("api:score_traces"), reverse("api:rank_candidates")
    assert program.post(score, asked, content_type="application/json").status_code == 409
    generation_project.run_generation(project)
    told = program.post(score, asked, content_type="application/json").json()["traces"][0]
    assert told["p_correct"][1] < told["p_correct"][0]
    assert sum(told["first_error"]) == pytest.approx(1)
    assert told["first_error"][-1] == pytest.approx(told["p_right"])
    assert told["flagged"] == 1
    both: dict[str, Any] = {"project": project.slug, "problem": "Add up.", "candidates": [SUMS, RIGHT]}
    assert program.post(rank, both, content_type="application/json").json()["order"] == [1, 0]
    assert list(PRMUsage.objects.order_by("pk").values_list("purpose", "n_calls", "n_steps")) == [
        ("flag", 1, 2),
        ("rerank", 1, 4),
    ]


def test_invalid_request_is_refused() -> None:
    project = factories.make_project()
    program = program_of(project)
    score = reverse("api:score_traces")
    asked: dict[str, Any] = {"project": project.slug, "purpose": "fun", "traces": []}
    assert program.post(score, asked, content_type="application/json").status_code == 422
    asked = {"project": "not-mine", "purpose": "flag", "traces": [{"problem": "p", "steps": ["a"]}]}
    assert program.post(score, asked, content_type="application/json").status_code == 404


def test_pushed_scores_are_stored_once_and_bad_lines_are_reported() -> None:
    project, other = factories.make_project(), factories.make_project()
    one, two = factories.make_trace(project), factories.make_trace(project)
    foreign = factories.make_trace(other)
    prm, program = pushed(project), program_of(project)
    good = {"trace": one.pk, "scores": [0.9, 0.8, 0.1]}
    answer = push(
        program,
        prm,
        good,
        {"digest": two.digest, "scores": [1, 0, 0.5]},
        b"",
        {"trace": foreign.pk, "scores": [1, 1, 1]},
        {"trace": two.pk, "scores": [0.1]},
        {"trace": one.pk, "scores": [0.9, 0.8, 1.1]},
        b"{nonsense",
        b'{"trace": 1, "digest": "x", "scores": []}',
        good,
        {"trace": one.pk, "scores": [0.9, 0.8, 0.2]},
    )
    told = answer.json()
    assert (answer.status_code, told["added"], told["known"], told["steps"], told["bad"]) == (200, 2, 1, 6, 6)
    assert [each["line"] for each in told["bad_lines"]] == [4, 5, 6, 7, 8, 10]
    assert scores.load_step_scores(prm.pk, [one.pk])[one.pk] == pytest.approx([0.9, 0.8, 0.1])
    assert push(program, prm, good).json()["known"] == 1
    refused = push(program, prm, b"{nonsense")
    assert api_clients.problem_detail(refused)
    assert (refused.status_code, refused.json()["bad"], refused.json()["bad_lines"][0]["line"]) == (422, 1, 1)
    assert Score.objects.count() == 2


def test_scores_need_a_version_that_accepts_them() -> None:
    project = factories.make_project()
    identity = PRMIdentity("vllm", "m", address="http://127.0.0.1:1")
    elsewhere = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    program = program_of(project)
    assert push(program, elsewhere, {"trace": 1, "scores": []}).status_code == 422
    elsewhere.version = 99
    assert push(program, elsewhere, {"trace": 1, "scores": []}).status_code == 404
