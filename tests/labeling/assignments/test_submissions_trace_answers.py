"""Answers to questions on the whole trace: recorded, merged, required for a submit, corrected, and cleared."""

from typing import Any

import pytest

from labeling import assignments
from labeling.models import Assignment, RatingEdit, StepReview, TraceAnswer
from labeling.projects import trace_questions
from labeling.projects.protocols import SubmitCode, SubmitState
from labeling.projects.trace_questions import QuestionKind, TraceQuestion
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient

pytestmark = pytest.mark.django_db
QUESTIONS = trace_questions.store_questions(
    [
        *trace_questions.QUESTION_TEMPLATES["math"].questions,
        TraceQuestion("note", "What is remarkable?", QuestionKind.TEXT, is_required=False),
    ]
)


@pytest.fixture
def assignment() -> Assignment:
    project = factories.make_project(trace_questions=QUESTIONS)
    return factories.make_assignment(factories.make_rater(project), factories.make_trace(project, ["One.", "Two."]))


@pytest.fixture
def client(assignment: Assignment) -> WorkPageClient:
    client = WorkPageClient(assignment)
    client.rate([1, 1])
    return client


def answer(client: WorkPageClient, value: str, question: str = "final_label", **more: int) -> assignments.IncomingEdit:
    return client.write(0, None, kind="answer", option=None, question=question, text=value, **more)


def answers(assignment: Assignment, revision: int = 1) -> dict[str, str]:
    rows = TraceAnswer.objects.filter(assignment=assignment, revision=revision)
    return dict(rows.values_list("question", "value"))


def submit(client: WorkPageClient) -> None:
    assignments.submit(**client.place, now=factories.NOW, by=client.assignment.rater.user)


def test_submit_needs_the_required_answers(assignment: Assignment, client: WorkPageClient) -> None:
    for value in ("", "2"):  # none, and one that the question does not offer
        client.send(answer(client, value))
        with pytest.raises(assignments.SubmissionIncomplete) as refusal:
            submit(client)
        assert refusal.value.state == SubmitState(SubmitCode.ANSWER_QUESTIONS, 1)
    client.send(answer(client, "-1", active_ms=400), answer(client, "Nothing.", "note"), answer(client, "x", "unknown"))
    submit(client)
    assert answers(assignment) == {"final_label": "-1", "note": "Nothing."}
    assert assignment.submissions.get().total_ms == 400
    assert StepReview.objects.filter(active_ms__gt=0).count() == 0
    assert RatingEdit.objects.filter(kind="answer", was_applied=True).count() == 5


def test_giving_up_needs_no_answer(assignment: Assignment, client: WorkPageClient) -> None:
    client.send(answer(client, " ", "note"))
    assignments.give_up(**client.place, now=factories.NOW, by=None, reason="Hard.")
    assert answers(assignment) == {}


def test_the_client_that_saw_more_wins(assignment: Assignment, client: WorkPageClient) -> None:
    client.send(answer(client, "1"))
    other = WorkPageClient(assignment, "other")
    [lost] = other.send(answer(other, "-1")).lost
    assert (lost.target.part, lost.target.question, lost.client) == ("answer", "final_label", "window")
    assert answers(assignment) == {"final_label": "1"}
    other.send(answer(other, "-1"), answer(other, "1"))  # the last one of a batch counts
    assert answers(assignment) == {"final_label": "1"}
    repeated = assignments.record_edits(**client.place, writes=[answer(client, "-1")], now=factories.NOW)
    assert [each.target.question for each in repeated.lost] == ["final_label"]


def test_correction_starts_from_the_submitted_answers(assignment: Assignment, client: WorkPageClient) -> None:
    client.send(answer(client, "1"))
    submit(client)
    place: dict[str, Any] = {
        "assignment_id": assignment.pk,
        "rater_id": assignment.rater_id,
        "now": factories.NOW,
        "by": None,
    }
    assignments.reopen_submission(**place)
    assert answers(assignment, 2) == {"final_label": "1"}
    client.send(answer(client, "-1"))
    assert (answers(assignment), answers(assignment, 2)) == ({"final_label": "1"}, {"final_label": "-1"})
    assignments.discard_correction(**place)
    assert answers(assignment, 2) == {}


@pytest.mark.parametrize("fields", [{"question": ""}, {"question": "x" * 41}, {"question": "\x00"}])
def test_odd_questions_are_refused(client: WorkPageClient, fields: dict[str, str]) -> None:
    with pytest.raises(assignments.EditRefused) as refusal:
        client.send(answer(client, "1", fields["question"]))
    assert refusal.value.field == "question"
    with pytest.raises(assignments.EditRefused):
        client.send(client.write(0, 1, question="final_label"))
