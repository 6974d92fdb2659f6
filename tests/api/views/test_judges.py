"""Judges and their runs in the API."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from machines.models import Judge, JudgeRun
from tests.api import api_clients
from tests.machines import judged_project
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db

JUDGE = {"name": "c", "address": "http://127.0.0.1:1/v1", "model": "m", "key": "sk-1"}


def address(personas: LoggedInPersonas, name: str, **arguments: Any) -> str:
    return reverse(f"api:{name}", kwargs={"slug": personas.cast.project.slug, **arguments})


def send(program: Client, method: str, url: str, data: Any = None) -> Any:
    return program.generic(method, url, b"" if data is None else json.dumps(data).encode(), "application/json")


def test_program_adds_and_runs_a_judge(personas: LoggedInPersonas) -> None:
    judged_project.add_traces(personas.cast.project, 2)
    program = api_clients.make_client(personas.cast.engineer)
    added = send(program, "POST", address(personas, "judges"), JUDGE)
    assert added.status_code == 201
    assert "key" not in added.json()
    assert (added.json()["version"], added.json()["may_run"]) == (1, True)
    runs = address(personas, "judge_runs", judge=added.json()["id"])
    started = send(program, "POST", runs, {"most_tokens": 500})
    assert (started.status_code, started.json()["n_traces"]) == (201, 2)
    assert send(program, "POST", runs, {}).status_code == 422  # one run at a time
    run = address(personas, "judge_run", run=started.json()["id"])
    assert program.get(run).json()["state"] == "open"
    assert send(program, "DELETE", run).json()["state"] == "cancelled"
    assert send(program, "POST", f"{run}/resume").status_code == 422
    assert [each["state"] for each in program.get(runs).json()] == ["cancelled"]
    assert [each["name"] for each in program.get(address(personas, "judges")).json()] == ["c"]


def test_program_adds_rollouts_and_a_prm(personas: LoggedInPersonas) -> None:
    program = api_clients.make_client(personas.cast.engineer)
    rollouts = {"contract": "rollouts", "n_votes": 8, "temperature": 1, "rollouts": {"checker": "expression"}}
    added = send(program, "POST", address(personas, "judges"), JUDGE | rollouts)
    assert (added.status_code, added.json()["kind"]) == (201, "monte_carlo")
    assert (added.json()["rollouts"]["checker"], added.json()["rollouts"]["stop"]) == ("expression", "\nProblem:")
    prm = judged_project.make_prm(personas.cast.project)
    added = send(program, "POST", address(personas, "judges"), {"name": "p", "contract": "prm", "prm": prm.version})
    assert (added.status_code, added.json()["prm"], added.json()["threshold"]) == (201, prm.version, 0.5)
    assert "rollouts" not in added.json()
    assert (
        send(program, "POST", address(personas, "judges"), {"name": "p", "contract": "prm", "prm": 99}).status_code
        == 422
    )
    assert len(program.get(address(personas, "judges")).json()) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"address": "http://10.0.0.1"},
        {"n_votes": 3},
        {"contract": "x"},
        {"prompt": "none"},
        {"vote": 3},
        {"rollouts": {"checker": "number"}},
        {"contract": "rollouts", "rollouts": {"checker": "regex", "pattern": "(a+)+"}},
        {"family": "x"},
        {"key": "\u00e9"},
    ],
)
def test_invalid_judge_names_its_field(personas: LoggedInPersonas, changed: dict[str, Any]) -> None:
    response = send(api_clients.make_client(personas.cast.lead), "POST", address(personas, "judges"), JUDGE | changed)
    assert response.status_code == 422
    assert response.json()["errors"]
    assert not Judge.objects.exists()


def test_budget(personas: LoggedInPersonas) -> None:
    program, url = api_clients.make_client(personas.cast.lead), address(personas, "machine_budget")
    assert program.get(url).json()["most_tokens"] is None
    assert send(program, "PUT", url, {"most_tokens": 7}).json()["most_tokens"] == 7
    assert send(program, "PUT", url, {"most_tokens": 0}).status_code == 422


def test_paused_run_resumes(personas: LoggedInPersonas) -> None:
    judged_project.add_traces(personas.cast.project, 1)
    run = judged_project.start_run(judged_project.make_judge(personas.cast.project))
    judged_project.pause_run(run)
    program = api_clients.make_client(personas.cast.lead)
    assert program.get(address(personas, "judge_run", run=run.pk)).json()["pause"] == "configuration"
    assert send(program, "POST", address(personas, "resume_judge_run", run=run.pk)).json()["state"] == "open"
    assert JudgeRun.objects.get().pause == ""
