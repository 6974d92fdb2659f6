"""Gaming canaries over the API."""

import json

import pytest
from django.urls import reverse

from jobs.models import Job
from prm import canaries
from prm.models import CanaryScore, CanarySet
from tests import factories
from tests.api import api_clients
from tests.machines import judged_project
from tests.people.personas import LoggedInPersonas
from tests.prm import canary_project

pytestmark = pytest.mark.django_db


def test_program_freezes_canaries_and_reads_the_figures(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    engineer = api_clients.make_client(personas.cast.engineer)
    url, scores = (reverse(f"api:{name}", args=[project.slug]) for name in ("canaries", "canary_scores"))
    assert engineer.get(url).status_code == 422
    assert engineer.post(url, "{}", content_type="application/json").status_code == 422
    for number in range(6):
        canary_project.add_solution(project, number, first_error=1 if number % 2 else None)
    frozen = engineer.post(url, json.dumps({"n": 20}), content_type="application/json")
    assert (frozen.status_code, frozen.json()["n_edits"], frozen.json()["set"]) == (201, 20, 1)
    prm = canary_project.register_scorer(project, "http://127.0.0.1:1")
    requested = engineer.post(scores, json.dumps({"prm": prm.version}), content_type="application/json")
    assert requested.status_code == 202
    assert Job.objects.get(pk=requested.json()["job"]).kind == canaries.KIND
    pushed = judged_project.make_prm(project)
    refused = engineer.post(scores, json.dumps({"prm": pushed.version}), content_type="application/json")
    assert refused.status_code == 422
    for canary in CanarySet.objects.get().canaries.all():
        numbers = [0.5] * len(canary.steps)
        CanaryScore.objects.create(prm=prm, canary=canary, numbers=numbers, scored_at=factories.NOW)
    (result,) = engineer.get(url).json()["results"]
    assert (result["version"], result["report"]["n"]) == (f"PRM {prm.label}", 20)
