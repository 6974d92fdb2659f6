"""Questions on the whole trace: how a project stores them, their codes, and what answers them."""

import pytest

from labeling.projects import trace_questions
from labeling.projects.trace_questions import QUESTION_TEMPLATES, QuestionChoice, QuestionKind, TraceQuestion
from tests import factories


@pytest.mark.parametrize("template", QUESTION_TEMPLATES)
def test_templates_are_stored_and_read_again(template: str) -> None:
    questions = QUESTION_TEMPLATES[template].questions
    stored = trace_questions.store_questions(questions)
    assert trace_questions.store_questions(trace_questions.parse_questions(stored)) == stored
    assert len(questions) <= trace_questions.MAX_QUESTIONS
    assert all(2 <= len(question.choices) <= trace_questions.MAX_CHOICES for question in questions)


def test_what_keeps_its_name_keeps_its_code() -> None:
    def ask(*names: str, code: str = "", title: str = "Verdict", kind: str = "choice") -> TraceQuestion:
        return TraceQuestion(code, title, kind, tuple(QuestionChoice("", name) for name in names))

    [first] = trace_questions.code_questions([ask("Yes", "No way")], [])
    assert (first.code, [choice.code for choice in first.choices]) == ("verdict", ["yes", "no-way"])
    [renamed] = trace_questions.code_questions([ask("No way", "Yes!", code="verdict", title="Final")], [first])
    assert (renamed.code, [choice.code for choice in renamed.choices]) == ("verdict", ["no-way", "yes-2"])
    two = trace_questions.code_questions([ask("a", "b"), ask("c", "d", title="Verdict?")], [first])
    assert [question.code for question in two] == ["verdict", "verdict-2"]
    [scale] = trace_questions.code_questions([ask("low", "high", kind="scale")], [first])
    assert [choice.code for choice in scale.choices] == ["1", "2"]


def test_what_answers_a_question() -> None:
    [choice] = QUESTION_TEMPLATES["math"].questions
    text = TraceQuestion("note", "Note", QuestionKind.TEXT)
    assert trace_questions.find_unanswered([choice, text], {"final_label": "2", "note": " "}) == ["final_label", "note"]
    assert trace_questions.find_unanswered([choice, text], {"final_label": "-1", "note": "x"}) == []
    assert trace_questions.find_unanswered([text._replace(is_required=False)], {}) == []


@pytest.mark.django_db
def test_answers_are_named_in_the_order_of_the_questions() -> None:
    questions = trace_questions.store_questions(QUESTION_TEMPLATES["agents"].questions)
    project = factories.make_project(trace_questions=questions)
    values = {"looping": "no", "old": "x", "final_label": "-1"}
    named = trace_questions.name_answers(project, values)
    assert [(answer.question, answer.name) for answer in named][2] == ("old", "x")
    assert [answer.question for answer in named[:2]] == ["final_label", "looping"]
