"""Slots that are returned, taken late, or added."""

import datetime as dt

import pytest

from labeling import queue
from labeling.models import Assignment, QueueEntry
from tests import factories
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


def late(claim: queue.Claim, now: dt.datetime) -> str | None:
    """Take a slot for a submission after the end of the lease, as `labeling.assignments` does."""
    population = queue.take_late_slot(assignment_id=claim.assignment_id, now=now)
    queues.submit_assignment(claim.assignment_id, now)
    Assignment.objects.filter(pk=claim.assignment_id).update(
        holds_slot=population is not None, population=population or "extra"
    )
    return population


def test_late_submission_takes_its_lapsed_slot(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1)
    claim = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now, opened=True)
    queue.lapse_expired_leases(now=now + HOUR)
    assert late(claim, now + HOUR) == "scheduled"
    assert queues.is_balanced([trace])
    with pytest.raises(queue.NothingLeft):
        queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now + HOUR)


def test_late_slot_comes_from_any_lane_of_work(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1, slots=2)
    first, second = queues.make_raters(project, 2)
    claim = queue.claim_trace(rater_id=first.pk, now=now, opened=True)
    queue.lapse_expired_leases(now=now + HOUR)
    assert queue.claim_trace(rater_id=second.pk, now=now + HOUR).arm == "top_up"
    assert late(claim, now + HOUR) == "scheduled"
    assert not QueueEntry.objects.filter(is_open=True).exists()
    assert queues.is_balanced([trace])


def test_late_slot_is_not_taken_from_another_rater(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1)
    first, second = queues.make_raters(project, 2)
    claim = queue.claim_trace(rater_id=first.pk, now=now, opened=True)
    queue.lapse_expired_leases(now=now + HOUR)
    other = queue.claim_trace(rater_id=second.pk, now=now + HOUR, opened=True)
    assert late(claim, now + HOUR) is None
    assert Assignment.objects.get(pk=other.assignment_id).state == "opened"
    assert queues.is_balanced([trace])


def test_late_slot_of_a_further_label_counts_as_one(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1)
    first, second = queues.make_raters(project, 2)
    claim = queue.claim_trace(rater_id=first.pk, now=now, opened=True)
    queue.lapse_expired_leases(now=now + HOUR)
    queue.claim_trace(rater_id=second.pk, now=now + HOUR, opened=True)
    assert queue.add_slot(trace_id=trace, round=1, now=now + HOUR)
    assert late(claim, now + HOUR) == "opinion"
    assert queues.is_balanced([trace])


def test_assignment_that_holds_a_slot_takes_no_second_one(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1, slots=2)
    claim = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now, opened=True)
    assert late(claim, now) == "scheduled"
    assert QueueEntry.objects.get().slots_left == 1
    assert queues.is_balanced([trace])


def test_late_gold_takes_no_slot_of_work(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1, arm="gold")
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace], slots=1, now=now)
    first, second = queues.make_raters(project, 2)
    claim = queue.claim_trace(rater_id=first.pk, now=now, opened=True, chance=queues.GOLD)
    queue.lapse_expired_leases(now=now + HOUR)
    queue.claim_trace(rater_id=second.pk, now=now + HOUR, chance=queues.GOLD)
    assert late(claim, now + HOUR) is None


def test_add_slot_once_per_round_and_up_to_the_limit(now: dt.datetime) -> None:
    project = factories.make_project(overlap=2, overlap_limit=4)
    (trace,) = queues.fill_lane(project, 1, slots=2)
    assert [queue.add_slot(trace_id=trace, round=round, now=now) for round in (1, 1, 2, 3)] == [
        True,
        False,
        True,
        False,
    ]
    claims = [queue.claim_trace(rater_id=rater.pk, now=now) for rater in queues.make_raters(project, 4)]
    assert [claim.arm for claim in claims] == ["opinion", "opinion", "uniform", "uniform"]
    assert list(Assignment.objects.order_by("pk").values_list("population", flat=True)) == [
        *["opinion"] * 2,
        *["scheduled"] * 2,
    ]
    assert queues.is_balanced([trace])


def test_added_slot_is_not_for_raters_who_had_the_trace(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1)
    rater = factories.make_rater(project)
    queues.submit_assignment(queue.claim_trace(rater_id=rater.pk, now=now, opened=True).assignment_id, now)
    queue.add_slot(trace_id=trace, round=1, now=now)
    with pytest.raises(queue.NothingLeft):
        queue.claim_trace(rater_id=rater.pk, now=now)


def test_returned_further_label_stays_one(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1)
    first, second, third = queues.make_raters(project, 3)
    queues.submit_assignment(queue.claim_trace(rater_id=first.pk, now=now, opened=True).assignment_id, now)
    queue.add_slot(trace_id=trace, round=1, now=now)
    claim = queue.claim_trace(rater_id=second.pk, now=now, opened=True)
    queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="skipped", by=None)
    assert queue.claim_trace(rater_id=third.pk, now=now).arm == "opinion"
    assert queues.is_balanced([trace])
