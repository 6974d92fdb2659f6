"""The card says what the codes of kinds, severities and answers mean."""

import pytest

from labeling.projects import clauses, lifecycle, rating_rules, trace_questions
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file

pytestmark = pytest.mark.django_db


def test_card_names_kinds_severities_and_answers() -> None:
    questions = [
        *trace_questions.QUESTION_TEMPLATES["math"].questions,
        trace_questions.TraceQuestion("note", "Note", trace_questions.QuestionKind.TEXT),
    ]
    rules = {**rating_rules.copy_template("math"), "severities": ["minor", "major", "fatal"]}
    project = factories.make_project(
        asks_error_category=True,
        asks_severity=True,
        rating_rules=rules,
        trace_questions=trace_questions.store_questions(questions),
    )
    card = read_file(build_snapshot(project, "native"), "README.md").decode()
    assert "`misread` Misread the problem" in card
    assert "1 minor, 2 major, 3 fatal" in card
    assert all(f"`{code}`" in card for code in ("final_label", "-1", "note"))


def test_card_names_clauses_with_their_digests() -> None:
    project = factories.make_project(asks_clauses="optional")
    body = "# Refunds\n\nWithin 30 days.\n\n# Credit\n"
    lifecycle.publish_guideline(project=project, body=body, by=None, now=factories.NOW)
    card = read_file(build_snapshot(project, "native"), "README.md").decode()
    for clause in clauses.parse_clauses(body):
        assert f"`{clause.code}` {clause.title} (`{clause.digest}`)" in card
