"""Several windows of one rater write concurrently while leases lapse: nothing is lost, and nothing deadlocks."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from functools import partial

import pytest

from labeling import assignments, queue
from labeling.models import Assignment, QueueEntry, RatingEdit, StepReview, Submission
from tests import factories
from tests.concurrency import run_at_once
from tests.labeling.assignments.clients import WorkPageClient, current_ratings

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("real_connections")]

N_STEPS, N_BATCHES = 6, 5


@pytest.fixture
def assignment(now: dt.datetime) -> Assignment:
    project = factories.make_project()
    trace = factories.make_trace(project, ["x"] * N_STEPS)
    factories.make_entry(factories.make_lane(project, "top_up"), trace, slots=1)
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now, opened=True)
    return Assignment.objects.get(pk=claim.assignment_id)


def rate_on(client: WorkPageClient, rating: int, now: dt.datetime) -> list[assignments.RecordedBatch]:
    """Send batch after batch, each with all steps. Each batch has seen the answer to the previous one."""
    answers = []
    for _ in range(N_BATCHES):
        writes = [client.write(step, rating, active_ms=1) for step in range(N_STEPS)]
        answers.append(client.send(*writes, now=now))
    return answers


def assert_is_whole(assignment: Assignment, n_windows: int) -> None:
    """Check that every edit is stored once, each batch made one version, time is counted once, and each rating is that
    of its last applied edit."""
    assert RatingEdit.objects.count() == n_windows * N_BATCHES * N_STEPS
    assert sum(turn.active_ms or 0 for turn in StepReview.objects.all()) == RatingEdit.objects.count()
    versions = Counter(RatingEdit.objects.order_by("id").values_list("version", flat=True))
    assert set(versions.values()) == {N_STEPS}
    for (step, _), rating in current_ratings(assignment).items():
        newest = RatingEdit.objects.filter(step=step, was_applied=True).order_by("-version", "-sequence").first()
        assert newest is not None
        assert newest.rating == rating


def failures(outcomes: Sequence[object]) -> list[object]:
    return [each for each in outcomes if isinstance(each, Exception)]


def test_four_concurrent_windows_lose_no_edit(assignment: Assignment, now: dt.datetime) -> None:
    windows = [WorkPageClient(assignment, f"window {number}") for number in range(4)]
    outcomes = run_at_once(*[partial(rate_on, window, number % 3 - 1, now) for number, window in enumerate(windows)])
    assert failures(outcomes) == []
    assert_is_whole(assignment, len(windows))
    assignment.refresh_from_db()
    assert assignment.version == len(windows) * N_BATCHES


def test_concurrent_copies_of_a_message_are_stored_once(assignment: Assignment, now: dt.datetime) -> None:
    client = WorkPageClient(assignment)
    writes = [client.write(step, 1, active_ms=1) for step in range(N_STEPS)]
    send = partial(assignments.record_edits, **client.place, writes=writes, now=now)
    outcomes = run_at_once(*[send] * 4)
    assert failures(outcomes) == []
    assert RatingEdit.objects.count() == N_STEPS
    assert sum(turn.active_ms or 0 for turn in StepReview.objects.all()) == N_STEPS


def test_record_while_the_lease_lapses_keeps_every_rating(assignment: Assignment, now: dt.datetime) -> None:
    client, other = WorkPageClient(assignment, "one"), WorkPageClient(assignment, "other")
    lapse = partial(queue.lapse_expired_leases, now=now + dt.timedelta(hours=2))
    outcomes = run_at_once(partial(rate_on, client, 1, now), partial(rate_on, other, 0, now), lapse, lapse)
    assert failures(outcomes) == []
    assert_is_whole(assignment, 2)
    lapse()  # edits in progress were skipped
    assignment.refresh_from_db()
    assert assignment.state == "lapsed"
    assert QueueEntry.objects.get().slots_left == 1


def test_two_submits_while_the_lease_lapses_make_one_submission(assignment: Assignment, now: dt.datetime) -> None:
    client = WorkPageClient(assignment)
    client.rate([1] * N_STEPS)
    later = now + dt.timedelta(hours=2)
    submit = partial(assignments.submit, **client.place, now=later, by=None)
    outcomes = run_at_once(
        submit, submit, partial(queue.lapse_expired_leases, now=later), partial(rate_on, client, 1, later)
    )
    assert failures(outcomes) == []
    assert Submission.objects.count() == 1
    assignment.refresh_from_db()
    assert (assignment.state, assignment.population, assignment.holds_slot) == ("submitted", "scheduled", True)
    assert QueueEntry.objects.get().slots_left == 0
    assert RatingEdit.objects.count() == (1 + N_BATCHES) * N_STEPS


def test_concurrent_late_submit_and_claim_share_one_slot(assignment: Assignment, now: dt.datetime) -> None:
    client = WorkPageClient(assignment)
    client.rate([1] * N_STEPS)
    later = now + dt.timedelta(hours=2)
    queue.lapse_expired_leases(now=later)
    stranger = factories.make_rater(assignment.project)
    outcomes = run_at_once(
        partial(assignments.submit, **client.place, now=later, by=None),
        partial(queue.claim_trace, rater_id=stranger.pk, now=later, opened=True),
    )
    assert all(not isinstance(each, Exception) or isinstance(each, queue.NothingLeft) for each in outcomes), outcomes
    assert Assignment.objects.filter(holds_slot=True).count() == 1
    mine = Assignment.objects.get(pk=assignment.pk)
    assert mine.state == "submitted"
    assert mine.holds_slot == (mine.population == "scheduled")
