"""Every edit is stored once and applied by the merge rules; a repeated batch gets the same answer."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from events.models import Event
from labeling import assignments
from labeling.models import Assignment, Guideline, RatingEdit, StepReview
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient, current_ratings, rating_history

pytestmark = pytest.mark.django_db


@pytest.fixture
def assignment() -> Assignment:
    project = factories.make_project()
    trace = factories.make_trace(project, ["One.", ["Two.", "Too.", "To."], "Three."])
    return factories.make_assignment(factories.make_rater(project), trace)


def test_record_keeps_ratings_and_renews_the_lease(assignment: Assignment, now: dt.datetime) -> None:
    client = WorkPageClient(assignment)
    later = now + dt.timedelta(minutes=5)
    recorded = client.send(
        client.write(0, 1, flagged=True), client.write(1, -1, category="slip", text="2 + 2"), now=later
    )
    assert (recorded.version, recorded.state, recorded.sequences, recorded.lost) == (1, "opened", (1, 2), ())
    assert recorded.lease_ends_at == later + dt.timedelta(minutes=30)
    assignment.refresh_from_db()
    assert (assignment.version, assignment.lease_ends_at) == (1, recorded.lease_ends_at)
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): -1}
    judgment = StepReview.objects.get(assignment=assignment, step__position=1).judgments.get()
    assert (judgment.category, judgment.reason, judgment.flagged) == ("slip", "2 + 2", None)
    assert list(StepReview.objects.filter(assignment=assignment).values_list("shown", "chosen")) == [("0", 0)] * 2


def test_record_leaves_a_lease_that_was_just_renewed(assignment: Assignment, now: dt.datetime) -> None:
    client = WorkPageClient(assignment)
    seconds_later = now + dt.timedelta(seconds=20)
    recorded = client.send(client.write(0, 1), now=seconds_later)
    assignment.refresh_from_db()
    assert recorded.lease_ends_at == assignment.lease_ends_at == now + dt.timedelta(minutes=30)


def test_record_opens_a_held_trace(assignment: Assignment, now: dt.datetime) -> None:
    project = assignment.project
    project.guideline = Guideline.objects.create(project=project, version=1, body="", published_at=now)
    project.shows_reference_answer = True
    project.save()
    Assignment.objects.update(state="held", opened_at=None)
    client = WorkPageClient(assignment)
    assert client.rate([1]).state == "opened"
    assignment.refresh_from_db()
    assert (assignment.state, assignment.opened_at, assignment.guideline_id) == ("opened", now, project.guideline_id)
    assert (assignment.saw_reference_answer, assignment.saw_final_verdict) == (True, False)


def test_repeated_batch_adds_nothing_and_gets_the_same_answer(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    batch = [client.write(0, 1, active_ms=700), client.write(0, 0, active_ms=300)]
    first = client.send(*batch)
    again = client.send(*batch)
    assert again == first._replace(version_before=first.version)
    assert rating_history(assignment) == [("window", 1, False), ("window", 2, True)]
    assert StepReview.objects.get(assignment=assignment).active_ms == 1000


def test_lower_sequence_of_a_client_never_wins(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    early, late = client.write(0, 1), client.write(0, -1)
    client.send(late)
    assert client.send(early).lost == ()
    assert current_ratings(assignment) == {(0, 0): -1}
    assert rating_history(assignment) == [("window", 2, True), ("window", 1, False)]


def test_client_that_saw_more_wins(assignment: Assignment) -> None:
    one, other = WorkPageClient(assignment, "one"), WorkPageClient(assignment, "other")
    offline = other.write(0, 0)
    one.rate([1])
    one.rate([-1])
    answer = other.send(offline)
    [lost] = answer.lost
    assert (lost.sequence, lost.client, lost.judgment.rating) == (1, "one", -1)
    assert current_ratings(assignment) == {(0, 0): -1}
    assert other.send(offline).lost == answer.lost
    assert other.rate([0]).lost == ()
    assert current_ratings(assignment) == {(0, 0): 0}


def test_later_arrival_wins_between_equals(assignment: Assignment) -> None:
    one, other = WorkPageClient(assignment, "one"), WorkPageClient(assignment, "other")
    one.rate([1])
    assert other.send(other.write(0, -1, seen=0)).lost == ()
    assert current_ratings(assignment) == {(0, 0): -1}


def test_superseded_edit_does_not_return_through_another_client(assignment: Assignment) -> None:
    """A sent two edits and B replaced the second one; then A's first edit arrives, which is older than A's second."""
    one, other = WorkPageClient(assignment, "one"), WorkPageClient(assignment, "other")
    first, second = one.write(0, 1), one.write(0, 0)
    one.send(second)
    other.send(other.write(0, -1, seen=0))
    one.send(first)
    assert current_ratings(assignment) == {(0, 0): -1}


def test_seen_version_cannot_be_in_the_future(assignment: Assignment) -> None:
    one, other = WorkPageClient(assignment, "one"), WorkPageClient(assignment, "other")
    one.send(one.write(0, 1, seen=1_000_000))
    other.send(other.write(0, -1, seen=0))
    assert current_ratings(assignment) == {(0, 0): -1}
    assert RatingEdit.objects.get(client="one").seen == 0


def test_parts_of_a_step_do_not_conflict(assignment: Assignment) -> None:
    one, other = WorkPageClient(assignment, "one"), WorkPageClient(assignment, "other")
    one.send(one.comment(1, "Why two?"))
    one.rate([1, -1])
    answer = other.send(
        other.write(1, None, kind="write_step", option=None, text="Right."),
        other.write(1, 1, option=2),
        seen_now := other.comment(0, "Hm."),
    )
    assert seen_now.sequence == 3
    assert answer.lost == ()
    turn = StepReview.objects.get(assignment=assignment, step__position=1)
    assert (turn.comment, turn.written_text) == ("Why two?", "Right.")
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): -1, (1, 2): 1}


def test_undo_restores_the_previous_values(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    client.send(client.write(0, 1, flagged=True), client.write(0, -1))
    client.send(client.write(0, 1, kind="undo", flagged=True))
    assert current_ratings(assignment) == {(0, 0): 1}
    client.send(client.write(0, None, kind="undo"))
    assert current_ratings(assignment) == {(0, 0): None}
    assert len(rating_history(assignment)) == 4


def test_record_keeps_the_choice_with_the_order_shown(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    client.send(client.write(1, None, kind="choose", option=2, text="2 0"))
    turn = StepReview.objects.get(assignment=assignment)
    assert (turn.shown, turn.chosen) == ("2 0", 0)
    client.send(client.write(1, None, kind="choose", option=1))
    turn.refresh_from_db()
    assert (turn.shown, turn.chosen) == ("0 1 2", 1)


@pytest.mark.parametrize("state", ["released", "lapsed"])
def test_record_keeps_ratings_of_an_ended_assignment(assignment: Assignment, now: dt.datetime, state: str) -> None:
    Assignment.objects.update(state=state, holds_slot=False, ended_at=now)
    recorded = WorkPageClient(assignment).rate([1, 0])
    assert (recorded.state, recorded.is_late, recorded.lease_ends_at) == (state, False, None)
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): 0}


@pytest.mark.parametrize(
    ("write", "field"),
    [
        ({"step": 7}, "step"),
        ({"step": 0, "option": 3}, "option"),
        ({"step": 2, "rating": 2}, "rating"),
        ({"step": 0, "option": None}, "option"),
        ({"step": 0, "text": "\x00"}, "text"),
        ({"step": 0, "text": "\ud800"}, "text"),
        ({"step": 0, "kind": "erase"}, "kind"),
        ({"step": 0, "seen": -1}, "seen"),
        ({"step": 1, "kind": "choose", "text": "0 9"}, "text"),
    ],
)
def test_invalid_edit_refuses_the_whole_batch(assignment: Assignment, write: dict[str, object], field: str) -> None:
    client = WorkPageClient(assignment)
    with pytest.raises(assignments.EditRefused) as refused:
        client.send(client.write(0, 1), client.write(**{"rating": 1, **write}))  # type: ignore[arg-type]  # wrong on purpose
    assert (refused.value.index, refused.value.sequence, refused.value.field) == (1, 2, field)
    assert rating_history(assignment) == []
    assert current_ratings(assignment) == {}


def test_context_takes_comments_but_no_ratings(assignment: Assignment) -> None:
    assignment.trace.steps.filter(position=1).update(is_rateable=False)
    client = WorkPageClient(assignment)
    with pytest.raises(assignments.EditRefused) as refusal:
        client.send(client.write(1, 1))
    assert refusal.value.field == "step"
    client.send(client.comment(1, "Odd."))
    assert StepReview.objects.get(assignment=assignment).shown is None


def test_record_is_only_for_the_rater(assignment: Assignment, now: dt.datetime) -> None:
    stranger = factories.make_rater(assignment.project)
    with pytest.raises(assignments.AssignmentUnknown):
        assignments.record_edits(assignment_id=assignment.pk, rater_id=stranger.pk, client="x", writes=[], now=now)


@pytest.mark.parametrize(("removed", "withdrawn"), [(True, False), (False, True)])
def test_unexpected_edits_are_logged_once(
    assignment: Assignment, now: dt.datetime, removed: bool, withdrawn: bool
) -> None:
    if removed:
        assignment.rater.removed_at = now
        assignment.rater.save()
    if withdrawn:
        assignment.trace.withdrawn_at = now
        assignment.trace.save()
    client = WorkPageClient(assignment)
    client.rate([1])
    client.rate([1, 1])
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): 1}
    [event] = Event.objects.filter(project=assignment.project_id)
    assert event.what.startswith("writes.arrived_f")


@pytest.mark.parametrize("size", [1, 3])
def test_record_takes_the_same_few_statements(assignment: Assignment, size: int) -> None:
    client = WorkPageClient(assignment)
    client.rate([1])
    with CaptureQueriesContext(connection) as queries:
        client.rate([0] * size)
    assert len(queries) == 2


def test_active_time_is_at_most_the_time_since_the_claim(assignment: Assignment, now: dt.datetime) -> None:
    """A client sends an impossible time: it is stored, and counts up to the possible maximum."""
    client = WorkPageClient(assignment)
    Assignment.objects.filter(pk=assignment.pk).update(first_held_at=now, opened_at=now + dt.timedelta(seconds=20))
    client.send(
        client.write(0, 1, active_ms=3_600_000), client.write(1, 1, active_ms=30_000), now=now + dt.timedelta(minutes=1)
    )
    turns = StepReview.objects.order_by("step__position")
    assert list(turns.values_list("active_ms", flat=True)) == [65_000, 30_000]
    assert list(RatingEdit.objects.order_by("sequence").values_list("active_ms", flat=True)) == [3_600_000, 30_000]
    client.send(client.write(0, 0, active_ms=3_600_000), now=now + dt.timedelta(minutes=2))
    assert turns[0].active_ms == 125_000
