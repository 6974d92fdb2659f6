"""Leads write questions on the whole trace; annotators answer them; pages of leads show the answers."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from labeling import assignments
from labeling.models import Assignment, Project
from labeling.projects import trace_questions
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
VERDICT = {"code": "", "title": "Verdict", "kind": "choice", "choices": "Right\n\nWrong\nRight", "is_required": "on"}


@pytest.fixture
def cast(client: Client, personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    client.force_login(cast.lead)
    return cast


def questions_url(cast: Personas) -> str:
    return reverse("dashboard:trace_questions", args=[cast.project.slug])


def form_data(*questions: dict[str, str]) -> dict[str, str]:
    data = {f"form-{n}-{name}": value for n, each in enumerate(questions) for name, value in each.items()}
    return {"form-TOTAL_FORMS": str(len(questions)), "form-INITIAL_FORMS": "0", **data}


def stored_questions(cast: Personas) -> list[dict[str, Any]]:
    stored: list[dict[str, Any]] = Project.objects.get(pk=cast.project.pk).trace_questions
    return stored


def test_questions_are_saved_and_keep_their_codes(client: Client, cast: Personas) -> None:
    blank = {"title": "", "kind": "choice"}
    note = {"title": "Note", "kind": "text", "choices": "ignored", "help": "Optional."}
    assert client.post(questions_url(cast), form_data(VERDICT, note, blank)).status_code == 302
    verdict, note_stored = stored_questions(cast)
    assert verdict == {
        "code": "verdict",
        "title": "Verdict",
        "kind": "choice",
        "choices": [["right", "Right"], ["wrong", "Wrong"]],
        "is_required": True,
        "help": "",
    }
    assert (note_stored["choices"], note_stored["is_required"], note_stored["help"]) == ([], False, "Optional.")
    [first, second, empty] = client.get(questions_url(cast)).context["formset"]
    assert (first.initial["choices"], second.initial["title"], empty.initial) == ("Right\nWrong", "Note", {})
    renamed = {**VERDICT, "code": "verdict", "title": "Final verdict", "choices": "Wrong\nUnclear"}
    client.post(questions_url(cast), form_data(renamed))
    [changed] = stored_questions(cast)
    assert (changed["code"], changed["choices"]) == ("verdict", [["wrong", "Wrong"], ["unclear", "Unclear"]])


def test_template_fills_the_form_and_keeps_its_codes(client: Client, cast: Personas) -> None:
    formset = client.get(questions_url(cast), {"template": "agents"}).context["formset"]
    assert formset.initial[0]["code"] == "final_label"
    assert stored_questions(cast) == []
    filled = [{**{name: str(value) for name, value in each.items()}, "is_required": "on"} for each in formset.initial]
    assert client.post(questions_url(cast), form_data(*filled)).status_code == 302
    expected = trace_questions.store_questions(trace_questions.QUESTION_TEMPLATES["agents"].questions)
    assert stored_questions(cast) == expected


@pytest.mark.parametrize(
    "questions",
    [
        [{**VERDICT, "choices": "Right"}],
        [{**VERDICT, "choices": "\n".join(map(str, range(10)))}],
        [{**VERDICT, "choices": f"a\n{'x' * 61}"}],
        [{**VERDICT, "kind": "x"}],
        [VERDICT, VERDICT],
        [{**VERDICT, "code": "a"}, {**VERDICT, "code": "a", "title": "Other"}],
        [{**VERDICT, "title": f"Question {n}"} for n in range(9)],
    ],
)
def test_odd_questions_are_refused(questions: list[dict[str, str]], client: Client, cast: Personas) -> None:
    assert client.post(questions_url(cast), form_data(*questions)).status_code == 422
    assert stored_questions(cast) == []


def test_members_who_read_settings_cannot_save(client: Client, cast: Personas) -> None:
    client.force_login(cast.reviewer)
    [form] = client.get(questions_url(cast)).context["formset"]
    assert all(field.disabled for field in form.fields.values())


def answered_trace(cast: Personas) -> Assignment:
    questions = trace_questions.store_questions(trace_questions.QUESTION_TEMPLATES["math"].questions)
    Project.objects.filter(pk=cast.project.pk).update(trace_questions=questions)
    assignment = factories.make_assignment(
        cast.project.raters.get(user=cast.annotator), factories.make_trace(cast.project, ["One."])
    )
    client = WorkPageClient(assignment)
    client.rate([1])
    client.send(client.write(0, None, kind="answer", option=None, question="final_label", text="-1"))
    assignments.submit(**client.place, now=factories.NOW, by=cast.annotator)
    return assignment


def test_answers_are_on_the_pages_of_the_trace(client: Client, cast: Personas) -> None:
    assignment = answered_trace(cast)
    for name, key in (("submission", assignment.pk), ("trace", assignment.trace_id)):
        page = client.get(reverse(f"dashboard:{name}", args=[cast.project.slug, key])).content.decode()
        assert 'data-answer="final_label" data-value="-1"' in page
    client.force_login(cast.annotator)
    page = client.get(reverse("annotate:submitted_one", args=[assignment.pk])).content.decode()
    assert 'data-answer="final_label" data-value="-1"' in page
    guide = client.get(reverse("annotate:guide", args=[cast.project.slug])).content.decode()
    assert str(trace_questions.QUESTION_TEMPLATES["math"].questions[0].title) in guide
