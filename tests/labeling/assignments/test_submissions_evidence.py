"""Quotes of negative steps, and what is missing after a step: stored, corrected, exported, and imported again."""

import io
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from formats import native
from labeling import assignments
from labeling.models import Assignment, Judgment, Project, RatingEdit, StepReview
from labeling.models.trace import ImportedLabelKind
from labeling.traces import load
from labeling.traces.load import LoadState
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.labeling.assignments.clients import WorkPageClient
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
QUOTES: list[dict[str, Any]] = [{"text": "is 7", "start": 3, "end": 7}, {"text": "typed"}]


def quote(*quotes: dict[str, Any]) -> list[assignments.Quote]:
    return [assignments.Quote(**each) for each in quotes]


@pytest.fixture
def assignment(personas: LoggedInPersonas) -> Assignment:
    project = personas.cast.project
    Project.objects.filter(pk=project.pk).update(
        protocol="every_step", asks_evidence=True, asks_omissions=True, reserve_problem_share=0.0
    )
    project.refresh_from_db()
    rater = project.raters.get(user=personas.cast.annotator)
    return factories.make_assignment(rater, factories.make_trace(project, ["It is 7.", "So 8."]))


@pytest.fixture
def client_of(assignment: Assignment) -> WorkPageClient:
    client = WorkPageClient(assignment)
    client.send(client.write(0, -1, evidence=quote(*QUOTES)), client.write(1, 1))
    client.send(client.write(1, None, kind="missing", option=None, text="A check."))
    return client


def stored(assignment: Assignment, revision: int = 1) -> tuple[Any, str]:
    of_revision = {"turn__assignment": assignment, "turn__revision": revision}
    evidence = Judgment.objects.get(turn__step__position=0, **of_revision).evidence
    return evidence, StepReview.objects.get(assignment=assignment, revision=revision, step__position=1).missing


def test_quotes_and_omissions_are_stored_and_corrected(assignment: Assignment, client_of: WorkPageClient) -> None:
    assert stored(assignment) == (QUOTES, "A check.")
    assert RatingEdit.objects.get(step=0).evidence == QUOTES
    place: dict[str, Any] = {**client_of.place, "now": factories.NOW, "by": None}
    assignments.submit(**place)
    place.pop("client")
    assignments.reopen_submission(**place)
    assert stored(assignment, 2) == (QUOTES, "A check.")
    client_of.send(client_of.write(0, -1), client_of.write(1, None, kind="missing", option=None))
    assert (stored(assignment), stored(assignment, 2)) == ((QUOTES, "A check."), (None, ""))


@pytest.mark.parametrize(
    "quotes",
    [
        [{"text": ""}],
        [{"text": "x" * 2001}],
        [{"text": "\x00"}],
        [{"text": "a", "start": 1}],
        [{"text": "a", "start": 2, "end": 2}],
        [{"text": "a", "start": -1, "end": 2}],
        [{"text": "a"}] * 21,
    ],
)
def test_odd_quotes_are_refused(quotes: list[dict[str, Any]], assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    with pytest.raises(assignments.EditRefused) as refusal:
        client.send(client.write(0, -1, evidence=quote(*quotes)))
    assert refusal.value.field == "evidence"


def test_quotes_and_omissions_are_exported_and_come_back(assignment: Assignment, client_of: WorkPageClient) -> None:
    assignments.submit(**client_of.place, now=factories.NOW, by=None)
    snapshot = build_snapshot(assignment.project, "native", "steps")
    written = read_file(snapshot, "data/native/train.jsonl")
    row = json.loads(written)
    assert [(each["step"], each["text"], each["start"]) for each in row["error_evidence"]] == [
        (0, "is 7", 3),
        (0, "typed", None),
    ]
    assert row["omissions"] == ["", "A check."]
    first, second = map(json.loads, read_file(snapshot, "data/steps/train.jsonl").splitlines())
    assert [each["text"] for each in first["ratings"][0]["evidence"]] == ["is 7", "typed"]
    assert second["ratings"][0]["missing_after"] == "A check."
    other = factories.make_project("other", reserve_problem_share=0.0)
    state = LoadState(project=other, source=factories.make_source(other), labels=ImportedLabelKind.JUDGMENTS)
    load.load_chunk(state=state, records=list(native.read(io.BytesIO(written))), now=factories.NOW)
    assert stored(Assignment.objects.get(project=other)) == (QUOTES, "A check.")


def test_pages_show_quotes_and_omissions(
    client: Client, personas: LoggedInPersonas, assignment: Assignment, client_of: WorkPageClient
) -> None:
    assignments.submit(**client_of.place, now=factories.NOW, by=None)
    client.force_login(personas.cast.lead)
    page = reverse("dashboard:submission", args=[assignment.project.slug, assignment.pk])
    assert all(f"data-{part}" in client.get(page).content.decode() for part in ("evidence", "missing"))
    client.force_login(personas.cast.annotator)
    own = client.get(reverse("annotate:submitted_one", args=[assignment.pk])).content.decode()
    assert all(f"data-{part}" in own for part in ("evidence", "missing"))
