"""The trace list finds kinds of errors, severities and answers of submissions."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling import assignments
from labeling.models import Project, Rater, Trace
from labeling.projects import clauses, lifecycle, rating_rules, trace_questions
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
QUESTIONS = trace_questions.store_questions(trace_questions.QUESTION_TEMPLATES["math"].questions)


@pytest.fixture
def cast(client: Client, personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    client.force_login(cast.lead)
    return cast


def label_trace(rater: Rater, category: str, severity: int | None, answer: str) -> Trace:
    trace = factories.make_trace(rater.project, ["One.", "Two."])
    client = WorkPageClient(factories.make_assignment(rater, trace))
    client.send(client.write(0, -1, category=category, severity=severity), client.write(1, -1, category="other"))
    client.send(client.write(0, None, kind="answer", option=None, question="final_label", text=answer))
    assignments.submit(**client.place, now=factories.NOW, by=None)
    return trace


@pytest.mark.fault
def test_filters_by_kind_severity_and_answer_match_one_submission(client: Client, cast: Personas) -> None:
    Project.objects.filter(pk=cast.project.pk).update(
        protocol="every_step", asks_error_category=True, asks_severity=True, trace_questions=QUESTIONS
    )
    first, second = (factories.make_rater(Project.objects.get(pk=cast.project.pk)) for _ in range(2))
    several = label_trace(first, "calculation misread unsupported", 2, "1")
    single = label_trace(second, "misread", 3, "-1")
    other = label_trace(second, "misreading", None, "-1")
    expected = {
        "kind=misread": [single, several],
        "kind=calculation": [several],
        "kind=unsupported": [several],
        "severity=3": [single],
        "kind=misread&severity=2": [several],
        "kind=other&severity=2": [],  # at another step
        "answer=final_label=-1": [other, single],
        f"answer=final_label=-1&kind=misread&rater={second.pk}": [single],
        f"answer=final_label=1&rater={second.pk}": [],
        "label=no_error&kind=misread": [],
    }
    address = reverse("dashboard:traces", args=[cast.project.slug])
    for query, traces in expected.items():
        page = client.get(f"{address}?{query.replace('=-1', '%3D-1').replace('final_label=1', 'final_label%3D1')}")
        assert [row.trace.pk for row in page.context["traces"]] == [trace.pk for trace in traces], query


@pytest.mark.fault
def test_filter_by_clause_finds_the_clause_of_its_version(client: Client, cast: Personas) -> None:
    Project.objects.filter(pk=cast.project.pk).update(protocol="every_step", asks_clauses="optional")
    project = Project.objects.get(pk=cast.project.pk)
    rater = factories.make_rater(project)
    address = reverse("dashboard:traces", args=[project.slug])
    found = []
    for body in ("# Refunds\n\nA\n\n# Credit\n\nB\n", "# Greeting\n\nC\n\n# Refunds\n\nA\n"):
        lifecycle.publish_guideline(project=project, body=body, by=None, now=factories.NOW)
        first = clauses.parse_clauses(body)[0]
        trace = factories.make_trace(project, ["One."])
        work = WorkPageClient(factories.make_assignment(rater, trace, guideline=project.guideline))
        version = project.guideline.version if project.guideline else 0
        work.send(work.write(0, 1, citations=[assignments.Citation(first.code, first.digest, str(version))]))
        assignments.submit(**work.place, now=factories.NOW, by=None)
        found.append((f"1={first.digest}", trace.pk))
    for choice, trace_pk in found:
        page = client.get(address, {"clause": choice})
        assert [row.trace.pk for row in page.context["traces"]] == [trace_pk]
    assert len(page.context["form"].fields["clause"].choices) == 5  # two of each version, and none


def test_fields_are_there_if_the_project_asks_or_has_asked(client: Client, cast: Personas) -> None:
    address = reverse("dashboard:traces", args=[cast.project.slug])
    asked = {"kind", "severity", "clause", "answer"}
    assert not asked & client.get(address).context["form"].fields.keys()
    assert client.get(f"{address}?kind=misread").context["is_search"] is False
    taxonomy = {
        "kinds": rating_rules.copy_template("math")["kinds"],
        "severities": ["a", "b", "c"],
        "questions": QUESTIONS,
        "clauses": [["1", "Refunds", "d", ""]],
    }
    cast.project.guidelines.create(version=1, body="", taxonomy=taxonomy, published_at=factories.NOW)
    assert asked <= client.get(address).context["form"].fields.keys()
