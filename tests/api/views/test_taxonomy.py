"""Kinds of errors, questions and the guideline, read and changed by API."""

from typing import Any

import pytest
from django.urls import reverse

from labeling.models import Project
from labeling.projects import lifecycle
from tests import factories
from tests.api import api_clients
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
GUIDELINE = "# Refunds\n\nA\n\n# Credit\n\nB\n"
KIND = {"name": "Too late", "help": "After 30 days."}
QUESTION = {"title": "Is it right?", "choices": [{"name": "Yes"}, {"name": "No"}]}


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    lifecycle.publish_guideline(project=cast.project, body=GUIDELINE, by=None, now=factories.NOW)
    return cast


def send(cast: Personas, name: str, content: dict[str, Any]) -> Any:
    client = api_clients.make_client(cast.lead)
    method = client.patch if name == "taxonomy" else client.put
    return method(reverse(f"api:{name}", args=[cast.project.slug]), content, content_type="application/json")


def read(cast: Personas, name: str, **query: Any) -> dict[str, Any]:
    response = api_clients.make_client(cast.viewer).get(reverse(f"api:{name}", args=[cast.project.slug]), query)
    assert response.status_code == 200
    return dict(response.json())


@pytest.mark.fault
def test_changes_publish_versions_and_keep_codes(cast: Personas) -> None:
    version = read(cast, "taxonomy")["version"]
    changes = {"kinds": [KIND], "questions": [QUESTION], "asks_error_category": True, "asks_clauses": "negatives"}
    changed = send(cast, "taxonomy", changes).json()
    assert (changed["version"], changed["kinds"]) == (version + 1, [{"code": "too-late", **KIND}])
    [question] = changed["questions"]
    assert [choice["code"] for choice in question["choices"]] == ["yes", "no"]
    assert [clause["title"] for clause in changed["clauses"]] == ["Refunds", "Credit"]
    assert changed == read(cast, "taxonomy")
    back = {name: value for name, value in changed.items() if name not in ("version", "clauses")}
    assert send(cast, "taxonomy", back).json() == changed  # nothing changed, so no version
    renamed = {"kinds": [{"code": "too-late", "name": "Late"}, {"name": "Rude"}], "questions": []}
    again = send(cast, "taxonomy", renamed).json()
    assert [(kind["code"], kind["name"]) for kind in again["kinds"]] == [("too-late", "Late"), ("rude", "Rude")]
    assert (again["version"], again["questions"]) == (version + 2, [])
    earlier = read(cast, "taxonomy", version=version + 1)
    assert (earlier["kinds"], len(earlier["questions"])) == ([{"code": "too-late", **KIND}], 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"kinds": []},
        {"kinds": [KIND, KIND]},
        {"kinds": [{**KIND, "code": "unheard-of"}]},
        {"kinds": [{"name": str(number)} for number in range(13)]},
        {"kinds": [{"code": "other", "name": "Else"}, {"name": "Other"}]},
        {"severities": ["a", "b"]},
        {"questions": [{**QUESTION, "choices": [{"name": "Yes"}]}]},
        {"questions": [{**QUESTION, "kind": "text"}]},
        {"questions": [QUESTION, QUESTION]},
        {"questions": [{**QUESTION, "code": "a b"}]},
        {"kinds": [{"name": "One | two"}]},
        {"kinds": [{**KIND, "help": "One\u2028two"}]},
        {"questions": [{**QUESTION, "choices": [{"name": "Yes\nor"}, {"name": "No"}]}]},
        {"asks_clauses": "sometimes"},
        {"clauses": []},
    ],
)
def test_impossible_changes_are_refused(cast: Personas, changes: dict[str, Any]) -> None:
    before = Project.objects.values().get(pk=cast.project.pk)
    response = send(cast, "taxonomy", changes)
    assert response.status_code == 422
    assert api_clients.problem_detail(response)
    assert Project.objects.values().get(pk=cast.project.pk) == before


def test_guideline_is_published_once(cast: Personas) -> None:
    before = read(cast, "guideline")
    assert send(cast, "guideline", {"body": before["body"]}).json() == before
    assert (before["body"], [clause["code"] for clause in before["clauses"]]) == (GUIDELINE, ["1", "2"])
    after = send(cast, "guideline", {"body": "# Tone\n\nC", "changes": "Shorter."}).json()
    assert (after["version"], after["changes"]) == (before["version"] + 1, "Shorter.")
    assert send(cast, "guideline", {"body": "# Tone\n\nC"}).json() == after
    assert read(cast, "guideline", version=before["version"]) == before
    assert send(cast, "guideline", {"body": " "}).status_code == 422
    address = reverse("api:guideline", args=[cast.project.slug])
    assert api_clients.make_client(cast.viewer).get(address, {"version": "x"}).status_code == 422
