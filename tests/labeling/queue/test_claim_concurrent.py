"""Many raters claim at the same moment, each in a thread with its own connection."""

import datetime as dt
import os
from functools import partial

import pytest

from bench import concurrent_raters
from labeling import queue
from labeling.models import Assignment, QueueEntry
from tests import factories
from tests.concurrency import run_at_once
from tests.labeling.queue import queues

# `python -m bench.queue --rounds 20` does it with 2,000.
N_TRACES = int(os.environ.get("CROWD_TRACES", "300"))

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("real_connections"), pytest.mark.fault]


def test_every_trace_is_claimed_exactly_as_often_as_it_has_slots() -> None:
    overlap = 3
    project = concurrent_raters.set_up_project(n_traces=N_TRACES, n_raters=16, overlap=overlap)
    raters = list(project.raters.values_list("pk", flat=True))
    told = concurrent_raters.merge_results(concurrent_raters.run_in_threads(raters, seed=1))
    assert told.errors == []
    assert not any(concurrent_raters.find_violations(project, overlap).values()), concurrent_raters.find_violations(
        project, overlap
    )
    assert {"skipped", "left", "closed", "submitted"} <= set(told.counts)


def test_concurrent_claims_of_one_rater_take_one_slot(now: dt.datetime) -> None:
    project = factories.make_project()
    traces = queues.fill_lane(project, 5, slots=2)
    rater = factories.make_rater(project)
    claims = run_at_once(*[partial(queue.claim_trace, rater_id=rater.pk, now=now)] * 4)
    assert len({claim.assignment_id for claim in claims if isinstance(claim, queue.Claim)}) == 1
    assert len([claim for claim in claims if isinstance(claim, queue.Claim)]) == 4, claims
    assert queues.is_balanced(traces)


def test_concurrent_opening_claims_take_a_slot_each(now: dt.datetime) -> None:
    project = factories.make_project(open_limit=9)
    traces = queues.fill_lane(project, 6, slots=2)
    rater = factories.make_rater(project)
    claims = run_at_once(*[partial(queue.claim_trace, rater_id=rater.pk, now=now, opened=True)] * 4)
    assert all(isinstance(claim, queue.Claim) for claim in claims), claims
    assert queues.is_balanced(traces)


def test_claim_finds_the_last_slot_after_skipped_locks(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1, slots=8)
    raters = queues.make_raters(project, 8)
    claims = run_at_once(*[partial(queue.claim_trace, rater_id=rater.pk, now=now) for rater in raters])
    assert all(isinstance(claim, queue.Claim) for claim in claims), claims
    assert QueueEntry.objects.get().slots_left == 0
    assert queues.is_balanced([trace])


def test_concurrent_late_slot_and_claim_share_no_slot(now: dt.datetime) -> None:
    project = factories.make_project()
    traces = queues.fill_lane(project, 12)
    raters = queues.make_raters(project, 12)
    claims = [queue.claim_trace(rater_id=rater.pk, now=now, opened=True) for rater in raters]
    later = now + dt.timedelta(hours=1)
    queue.lapse_expired_leases(now=later)
    others = queues.make_raters(project, 12)
    outcomes = run_at_once(
        *[partial(concurrent_raters.submit_assignment, claim.assignment_id, later) for claim in claims],
        *[partial(queue.claim_trace, rater_id=rater.pk, now=later) for rater in others],
    )
    assert not [each for each in outcomes if isinstance(each, Exception) and not isinstance(each, queue.NothingLeft)]
    assert queues.is_balanced(traces)
    assert Assignment.objects.filter(holds_slot=True).count() == 12


def test_concurrent_lapse_and_submit_lose_no_slot(now: dt.datetime) -> None:
    project = factories.make_project()
    traces = queues.fill_lane(project, 12, slots=2)
    claims = [queue.claim_trace(rater_id=rater.pk, now=now, opened=True) for rater in queues.make_raters(project, 12)]
    later = now + dt.timedelta(hours=1)
    outcomes = run_at_once(
        *[partial(concurrent_raters.submit_assignment, claim.assignment_id, later) for claim in claims],
        *[partial(queue.lapse_expired_leases, now=later)] * 4,
    )
    assert not [each for each in outcomes if isinstance(each, Exception)]
    assert queues.is_balanced(traces)
    assert Assignment.objects.filter(state="submitted", holds_slot=True).count() == 12
