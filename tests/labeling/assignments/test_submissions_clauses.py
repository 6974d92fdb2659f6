"""Clauses that ratings cite: stored, required, corrected, exported, and imported again."""

import io
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotate import work_page
from formats import native
from labeling import assignments
from labeling.models import Assignment, Judgment, RatingEdit
from labeling.models.trace import ImportedLabelKind
from labeling.projects import lifecycle
from labeling.traces import load
from labeling.traces.load import LoadState
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.labeling.assignments.clients import WorkPageClient
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
POLICY = "# Returns\n\n## Refunds\n\nWithin 30 days.\n\n## Credit\n\nNo cash.\n"


@pytest.fixture
def assignment(personas: LoggedInPersonas) -> Assignment:
    project = personas.cast.project
    settings: dict[str, Any] = {"protocol": "every_step", "asks_clauses": "negatives", "reserve_problem_share": 0.0}
    lifecycle.change_settings(project=project, by=None, now=factories.NOW, **settings)
    guideline = lifecycle.publish_guideline(project=project, body=POLICY, by=None, now=factories.NOW)
    rater = project.raters.get(user=personas.cast.annotator)
    return factories.make_assignment(rater, factories.make_trace(project, ["It is 7.", "So 8."]), guideline=guideline)


def cite(assignment: Assignment, *codes: str) -> list[assignments.Citation]:
    clauses = {each["code"]: each for each in work_page.build_trace(assignment.pk)["clauses"]}
    return [assignments.Citation(code, clauses[code]["digest"], clauses[code]["version"]) for code in codes]


def stored(assignment: Assignment, step: int = 0, revision: int = 1) -> Any:
    judgments = Judgment.objects.filter(turn__assignment=assignment, turn__revision=revision)
    return judgments.get(turn__step__position=step).citations


def test_page_gets_the_clauses_of_its_version(assignment: Assignment) -> None:
    trace = work_page.build_trace(assignment.pk)
    assert trace["asks_clauses"] == "negatives"
    assert [(each["code"], each["title"]) for each in trace["clauses"]] == [("1", "Refunds"), ("2", "Credit")]
    version = trace["clauses"][0]["version"]
    lifecycle.publish_guideline(project=assignment.project, body="# Other", by=None, now=factories.NOW)
    assert work_page.build_trace(assignment.pk)["clauses"][0]["version"] == version


def test_citations_are_required_stored_and_corrected(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    client.send(client.write(0, -1), client.write(1, 1))
    with pytest.raises(assignments.SubmissionIncomplete) as incomplete:
        assignments.submit(**client.place, now=factories.NOW, by=None)
    assert (incomplete.value.state.code, incomplete.value.state.number) == ("cite_clause", 1)
    cited = cite(assignment, "2", "1")
    client.send(client.write(0, -1, citations=cited))
    rows = [{"clause": each.clause, "digest": each.digest, "version": each.version} for each in cited]
    assert stored(assignment) == rows
    assert RatingEdit.objects.get(sequence=3).citations == rows
    place: dict[str, Any] = {**client.place, "now": factories.NOW, "by": None}
    assignments.submit(**place)
    place.pop("client")
    assignments.reopen_submission(**place)
    assert stored(assignment, revision=2) == rows


@pytest.mark.parametrize(
    "changes", [{"digest": "0" * 16}, {"clause": "9"}, {"version": "99"}, {"clause": "\x00"}, {"version": ""}]
)
def test_unknown_clauses_are_refused(changes: dict[str, str], assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    [citation] = cite(assignment, "1")
    fields = {"clause": citation.clause, "digest": citation.digest, "version": citation.version, **changes}
    with pytest.raises(assignments.EditRefused) as refusal:
        client.send(client.write(0, -1, citations=[assignments.Citation(**fields)]))
    assert refusal.value.field == "citations"
    with pytest.raises(assignments.EditRefused):
        client.send(client.write(0, -1, citations=[citation, citation]))


def test_citations_are_exported_and_come_back(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    client.send(client.write(0, -1, citations=cite(assignment, "2")), client.write(1, 1))
    assignments.submit(**client.place, now=factories.NOW, by=None)
    snapshot = build_snapshot(assignment.project, "native", "steps")
    written = read_file(snapshot, "data/native/train.jsonl")
    assert json.loads(written)["clause_citations"] == [{"step": 0, **stored(assignment)[0]}]
    first, second = map(json.loads, read_file(snapshot, "data/steps/train.jsonl").splitlines())
    assert first["ratings"][0]["citations"] == stored(assignment)
    assert second["ratings"][0]["citations"] == []
    other = factories.make_project("other", reserve_problem_share=0.0)
    state = LoadState(project=other, source=factories.make_source(other), labels=ImportedLabelKind.JUDGMENTS)
    load.load_chunk(state=state, records=list(native.read(io.BytesIO(written))), now=factories.NOW)
    again = build_snapshot(other, "native")
    assert (
        json.loads(read_file(again, "data/native/train.jsonl"))["clause_citations"]
        == (json.loads(written)["clause_citations"])
    )


def test_pages_show_citations(client: Client, personas: LoggedInPersonas, assignment: Assignment) -> None:
    browser = WorkPageClient(assignment)
    browser.send(browser.write(0, -1, citations=cite(assignment, "2")), browser.write(1, 1))
    assignments.submit(**browser.place, now=factories.NOW, by=None)
    client.force_login(personas.cast.lead)
    page = reverse("dashboard:submission", args=[assignment.project.slug, assignment.pk])
    assert 'data-clause="2"' in client.get(page).content.decode()
    client.force_login(personas.cast.annotator)
    own = reverse("annotate:submitted_one", args=[assignment.pk])
    assert 'data-clause="2"' in client.get(own).content.decode()
