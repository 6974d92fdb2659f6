"""A correction works on a copy and leaves the submission unchanged."""

import datetime as dt

import pytest

from events.models import Event
from labeling import assignments, raters
from labeling.models import Assignment, Submission
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient, current_ratings, rating_history

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(now: dt.datetime) -> WorkPageClient:
    """A client that has submitted a first revision."""
    project = factories.make_project()
    trace = factories.make_trace(project, ["One.", "Two."])
    client = WorkPageClient(factories.make_assignment(factories.make_rater(project), trace))
    client.send(client.write(0, 1, active_ms=10), client.comment(0, "Fine."))
    client.rate([1, -1])
    assignments.submit(**client.place, now=now, by=None)
    return client


def reopen(client: WorkPageClient, now: dt.datetime) -> Assignment:
    return assignments.reopen_submission(
        assignment_id=client.assignment.pk, rater_id=client.assignment.rater_id, now=now, by=None
    )


def test_reopen_works_on_a_copy(client: WorkPageClient, now: dt.datetime) -> None:
    assignment = reopen(client, now)
    assert (assignment.state, assignment.revision, assignment.submitted_revision) == ("submitted", 2, 1)
    client.seen = assignment.version
    client.rate([1, 1])
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): -1}
    assert current_ratings(assignment, revision=2) == {(0, 0): 1, (1, 0): 1}
    assert [turn.comment for turn in assignment.turns.filter(revision=2, step__position=0)] == ["Fine."]
    later = now + dt.timedelta(days=1)
    made = assignments.submit(**client.place, now=later, by=None)
    assert (made.revision, made.finish_reason, made.total_ms) == (2, "solution", 10)
    assignment.refresh_from_db()
    assert (assignment.submitted_revision, assignment.reopened_at) == (2, None)
    assert assignment.submitted_at == now
    assert Submission.objects.get(revision=1).finish_reason == "found_error"


def test_reopen_twice_returns_the_open_correction(client: WorkPageClient, now: dt.datetime) -> None:
    first = reopen(client, now)
    assert reopen(client, now + dt.timedelta(hours=1)).reopened_at == first.reopened_at
    assert Event.objects.filter(what="assignment.reopened").count() == 1


def test_delayed_submit_does_not_end_a_correction(client: WorkPageClient, now: dt.datetime) -> None:
    assignment = reopen(client, now)
    made = assignments.submit(**client.place, now=now, by=None, revision=1)
    assert made.revision == 1
    assignment.refresh_from_db()
    assert assignment.reopened_at is not None


def test_discarded_correction_leaves_the_submission_unchanged(client: WorkPageClient, now: dt.datetime) -> None:
    client.seen = reopen(client, now).version
    client.rate([-1])
    n_writes = len(rating_history(client.assignment))
    assignment = assignments.discard_correction(
        assignment_id=client.assignment.pk, rater_id=client.assignment.rater_id, now=now, by=None
    )
    assert (assignment.revision, assignment.reopened_at) == (1, None)
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): -1}
    assert current_ratings(assignment, revision=2) == {}
    assert len(rating_history(assignment)) == n_writes
    client.seen = reopen(client, now).version
    assert client.rate([0]).lost == ()
    assert current_ratings(assignment, revision=2) == {(0, 0): 0, (1, 0): -1}


def test_discard_is_refused_if_another_client_has_changed_the_correction(
    client: WorkPageClient, now: dt.datetime
) -> None:
    seen = reopen(client, now).version
    other = WorkPageClient(client.assignment, "other")
    other.seen = seen
    other.rate([-1])
    with pytest.raises(assignments.UnseenRatings):
        assignments.discard_correction(**client.place, seen=seen, now=now, by=None)
    assert assignments.discard_correction(**client.place, seen=seen + 1, now=now, by=None).reopened_at is None


def test_only_a_submission_can_be_reopened(now: dt.datetime) -> None:
    project = factories.make_project()
    open_one = WorkPageClient(factories.make_assignment(factories.make_rater(project), factories.make_trace(project)))
    with pytest.raises(assignments.CorrectionRefused) as refusal:
        reopen(open_one, now)
    assert refusal.value.code == "not_submitted"


def test_reopen_is_refused_after_the_correction_days(client: WorkPageClient, now: dt.datetime) -> None:
    with pytest.raises(assignments.CorrectionRefused) as refusal:
        reopen(client, now + dt.timedelta(days=7, seconds=1))
    assert refusal.value.code == "too_late"
    assert reopen(client, now + dt.timedelta(days=7)).revision == 2


def test_reopen_is_refused_in_a_closed_project(client: WorkPageClient, now: dt.datetime) -> None:
    client.assignment.project.state = "closed"
    client.assignment.project.save()
    with pytest.raises(assignments.CorrectionRefused) as refusal:
        reopen(client, now)
    assert refusal.value.code == "project_closed"


def test_removed_rater_cannot_reopen(client: WorkPageClient, now: dt.datetime) -> None:
    """Removed raters must not change their earlier submissions."""
    raters.remove_rater(rater=client.assignment.rater, now=now)
    with pytest.raises(assignments.CorrectionRefused) as refusal:
        reopen(client, now)
    assert refusal.value.code == "rater_removed"


def test_reopen_is_only_for_the_rater(client: WorkPageClient, now: dt.datetime) -> None:
    stranger = factories.make_rater(client.assignment.project)
    with pytest.raises(assignments.AssignmentUnknown):
        assignments.reopen_submission(assignment_id=client.assignment.pk, rater_id=stranger.pk, now=now, by=None)
