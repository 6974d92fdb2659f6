import pytest

from labeling import assignments
from labeling.models import Assignment, Exposure, RevealedLabel, Submission
from labeling.models.suggestion import SuggestionEnd
from labeling.projects import suggestions
from tests import factories
from tests.factories import NOW
from tests.labeling import suggested_project
from tests.labeling.assignments.clients import WorkPageClient, current_ratings

pytestmark = pytest.mark.django_db


def give_trace(arm: str, first_error: int | None) -> Assignment:
    project = factories.make_project()
    plan = suggested_project.start(
        project, reveal=0.9 if arm == "reveal" else 0.0, suggest=0.0 if arm == "reveal" else 0.5
    )
    trace = factories.make_trace(project)
    return suggested_project.assign(plan, suggested_project.find_rater(plan, trace, arm), trace, first_error)


def reveal(assignment: Assignment, step: int, rating: int) -> int | None:
    return assignments.reveal_label(
        assignment_id=assignment.pk, rater_id=assignment.rater_id, step=step, rating=rating, now=NOW
    )


def test_suggested_labels_are_shown_from_the_start() -> None:
    shown = assignments.load_suggestions(give_trace("suggest", 1).pk)
    assert shown == (False, {0: 1, 1: -1})


def test_blind_raters_see_nothing() -> None:
    assignment = give_trace("blind", 1)
    assert assignments.load_suggestions(assignment.pk) is None
    with pytest.raises(assignments.AssignmentUnknown):
        reveal(assignment, 0, 1)


def test_a_label_is_revealed_after_the_answer_and_the_first_answer_stays() -> None:
    assignment = give_trace("reveal", 1)
    assert assignments.load_suggestions(assignment.pk) == (True, {})
    assert reveal(assignment, 1, 1) == -1
    assert reveal(assignment, 1, -1) == -1
    assert reveal(assignment, 2, 1) is None  # the machine stopped at its first error
    assert assignments.load_suggestions(assignment.pk) == (True, {1: -1})
    assert RevealedLabel.objects.get().first_rating == 1


def test_only_the_rater_may_reveal() -> None:
    assignment = give_trace("reveal", 1)
    other = factories.make_rater(assignment.project)
    with pytest.raises(assignments.AssignmentUnknown):
        assignments.reveal_label(assignment_id=assignment.pk, rater_id=other.pk, step=0, rating=1, now=NOW)


def test_no_label_is_revealed_after_the_end_of_the_plan() -> None:
    assignment = give_trace("reveal", 1)
    assert reveal(assignment, 0, 1) == 1
    plan = Exposure.objects.get().plan
    suggestions.stop_suggestions(plan=plan, because=SuggestionEnd.LEAD, by=None, now=NOW)
    assert (reveal(assignment, 0, 1), reveal(assignment, 1, 1)) == (1, None)


def test_changed_answers_become_a_second_revision() -> None:
    assignment = give_trace("reveal", 1)
    client = WorkPageClient(assignment)
    client.rate([1, 1])
    assert [reveal(assignment, step, 1) for step in (0, 1)] == [1, -1]
    client.send(client.write(1, -1))
    made = assignments.submit(**client.place, now=NOW, by=None, active_ms=4000)
    assert (current_ratings(assignment), current_ratings(assignment, 2)) == (
        {(0, 0): 1, (1, 0): 1},
        {(0, 0): 1, (1, 0): -1},
    )
    first, second = Submission.objects.filter(assignment=assignment).order_by("revision")
    assert second == made
    assert (first.finish_reason, second.finish_reason, second.total_ms) == (None, "found_error", None)
    assignment.refresh_from_db()
    assert (assignment.revision, assignment.submitted_revision) == (2, 2)
    assert Exposure.objects.get().n_changed == 1
    again = assignments.submit(**client.place, now=NOW, by=None, revision=1)
    assert (again, Submission.objects.filter(assignment=assignment).count()) == (second, 2)


def test_a_withdrawn_error_keeps_the_first_answer_as_the_end() -> None:
    assignment = give_trace("reveal", None)
    client = WorkPageClient(assignment)
    client.rate([1, -1])
    assert [reveal(assignment, step, rating) for step, rating in ((0, 1), (1, -1))] == [1, 1]
    client.send(client.write(1, 1), client.write(2, 1))
    assert reveal(assignment, 2, 1) == 1
    assignments.submit(**client.place, now=NOW, by=None)
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): -1}
    assert current_ratings(assignment, 2) == {(0, 0): 1, (1, 0): 1, (2, 0): 1}
    reasons = Submission.objects.filter(assignment=assignment).order_by("revision")
    assert list(reasons.values_list("finish_reason", flat=True)) == ["found_error", "solution"]


def test_unchanged_answers_stay_one_revision() -> None:
    assignment = give_trace("reveal", 1)
    client = WorkPageClient(assignment)
    client.rate([1, -1])
    assert reveal(assignment, 1, -1) == -1
    assignments.submit(**client.place, now=NOW, by=None)
    assignment.refresh_from_db()
    assert (assignment.submitted_revision, Exposure.objects.get().n_changed) == (1, 0)


def test_a_correction_after_a_reveal_is_the_third_revision() -> None:
    assignment = give_trace("reveal", 1)
    client = WorkPageClient(assignment)
    client.rate([1, 1])
    reveal(assignment, 1, 1)
    client.send(client.write(1, -1))
    assignments.submit(**client.place, now=NOW, by=None)
    place = {"assignment_id": assignment.pk, "rater_id": assignment.rater_id}
    assignments.reopen_submission(**place, now=NOW, by=None)
    client.seen = Assignment.objects.get(pk=assignment.pk).version
    client.send(client.write(1, 1), client.write(2, 1))
    assert assignments.submit(**client.place, now=NOW, by=None).revision == 3
