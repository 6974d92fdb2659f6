"""Which trace a rater gets."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from labeling import queue
from labeling.models import Assignment, LaneCursor, QueueEntry
from tests import factories
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db


def test_claim_takes_a_slot(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1, slots=2)
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now)
    assert claim == (
        Assignment.objects.get().pk,
        trace,
        "work",
        "uniform",
        "held",
        now + dt.timedelta(minutes=5),
        None,
        None,
    )  # fmt: skip  one line reads better
    assert QueueEntry.objects.get().slots_left == 1
    assert queues.is_balanced([trace])


def test_claim_reads_a_lane_from_its_highest_key_down(now: dt.datetime) -> None:
    project = factories.make_project()
    traces = queues.fill_lane(project, 5)
    assert queues.claim_all(factories.make_rater(project), now) == traces


def test_claim_returns_the_held_trace(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 3)
    rater = factories.make_rater(project)
    first = queue.claim_trace(rater_id=rater.pk, now=now)
    later = now + dt.timedelta(minutes=4)
    again = queue.claim_trace(rater_id=rater.pk, now=later)
    assert again == first._replace(lease_ends_at=later + dt.timedelta(minutes=5))
    assert Assignment.objects.count() == 1


def test_claim_returns_the_held_trace_of_a_closed_lane(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 3, arm="policy")
    queues.fill_lane(project, 3)
    rater = factories.make_rater(project)
    first = queue.claim_trace(rater_id=rater.pk, now=now, chance=queues.POLICY)
    queue.close_lane(lane_id=QueueEntry.objects.get(trace=first.trace_id).lane_id, now=now, by=None)
    assert queue.claim_trace(rater_id=rater.pk, now=now).assignment_id == first.assignment_id


def test_claim_opens_the_held_trace(now: dt.datetime) -> None:
    project = factories.make_project(shows_final_verdict=True)
    queues.fill_lane(project, 1)
    rater = factories.make_rater(project)
    held = queue.claim_trace(rater_id=rater.pk, now=now)
    opened = queue.claim_trace(rater_id=rater.pk, now=now, opened=True)
    assert opened.assignment_id == held.assignment_id
    assert (opened.state, opened.lease_ends_at) == ("opened", now + dt.timedelta(seconds=project.lease_seconds))
    assert Assignment.objects.get().saw_final_verdict is True


def test_claim_that_opens_fixes_what_the_rater_sees(now: dt.datetime) -> None:
    project = factories.make_project(shows_reference_answer=True)
    queues.fill_lane(project, 1)
    claim = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now, opened=True)
    assignment = Assignment.objects.get(pk=claim.assignment_id)
    assert (assignment.state, assignment.opened_at) == ("opened", now)
    assert (assignment.saw_reference_answer, assignment.saw_final_verdict) == (True, False)
    assert assignment.lease_ends_at == claim.lease_ends_at == now + dt.timedelta(seconds=project.lease_seconds)


def test_rater_never_gets_a_trace_twice(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1, slots=3)
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now, opened=True)
    queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="skipped", by=None)
    with pytest.raises(queue.NothingLeft) as refusal:
        queue.claim_trace(rater_id=rater.pk, now=now)
    assert refusal.value.code == "kept_for_others"
    assert queues.is_balanced([trace])


def test_trace_that_was_only_held_is_claimed_again(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1)
    rater = factories.make_rater(project)
    first = queue.claim_trace(rater_id=rater.pk, now=now)
    queue.release_held(rater_id=rater.pk, now=now, reason="page closed", by=None)
    later = now + dt.timedelta(hours=1)
    again = queue.claim_trace(rater_id=rater.pk, now=later)
    assert (again.assignment_id, again.arm) == (first.assignment_id, "top_up")
    assert queues.is_balanced([trace])
    assignment = Assignment.objects.get()
    # It may have been rated without a network since it was first held: that time counts.
    assert (assignment.ended_at, assignment.first_held_at, assignment.held_at) == (None, now, later)


def test_trace_seen_as_gold_is_not_served_as_work(now: dt.datetime) -> None:
    project = factories.make_project(gold_share=1.0)
    (trace,) = queues.fill_lane(project, 1, arm="gold", slots=50)
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace], slots=2, now=now)
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now, opened=True, chance=queues.GOLD)
    assert (claim.trace_id, claim.purpose, claim.arm) == (trace, "gold", "gold")
    with pytest.raises(queue.NothingLeft):
        queue.claim_trace(rater_id=rater.pk, now=now)


@pytest.mark.parametrize(
    ("chance", "arm"),
    [(queues.GOLD, "gold"), (queues.RESERVE, "reserve"), (queues.UNIFORM, "uniform"), (queues.POLICY, "policy")],
)
def test_claim_serves_lanes_at_their_shares(now: dt.datetime, chance: float, arm: str) -> None:
    project = factories.make_project()
    for each in ("gold", "reserve", "uniform", "policy"):
        queues.fill_lane(project, 1, arm=each)
    claim = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now, chance=chance)
    assert (claim.arm, claim.purpose) == (arm, "gold" if arm == "gold" else "work")


def test_empty_lane_is_replaced_but_never_by_gold(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 3, arm="gold")
    reserve = queues.fill_lane(project, 2, arm="reserve")
    assert queues.claim_all(factories.make_rater(project), now, chance=queues.POLICY) == reserve


@pytest.mark.parametrize("arm", ["uniform", "reserve", "policy", "top_up", "opinion"])
def test_gold_is_served_only_beside_work(arm: str, now: dt.datetime) -> None:
    """If no work waits for this rater, a trace that is served anyway would be recognizable as gold."""
    project = factories.make_project()
    queues.fill_lane(project, 3, arm="gold")
    rater = factories.make_rater(project)
    with pytest.raises(queue.NothingLeft):
        queue.claim_trace(rater_id=rater.pk, now=now, chance=queues.GOLD)
    work = queues.fill_lane(project, 1, arm=arm, slots=2)
    claims = [
        queue.claim_trace(rater_id=rater.pk, now=now, opened=True, chance=at) for at in (queues.GOLD, queues.POLICY)
    ]
    assert [claim.arm for claim in claims] == ["gold", arm]
    assert claims[1].trace_id == work[0]
    with pytest.raises(queue.NothingLeft):
        queue.claim_trace(rater_id=rater.pk, now=now, chance=queues.GOLD)


def test_returned_slots_are_served_first(now: dt.datetime) -> None:
    project = factories.make_project()
    traces = queues.fill_lane(project, 2)
    first, second = queues.make_raters(project, 2)
    claim = queue.claim_trace(rater_id=first.pk, now=now, opened=True)
    queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="skipped", by=None)
    again = queue.claim_trace(rater_id=second.pk, now=now)
    assert (again.trace_id, again.arm) == (traces[0], "top_up")


def test_claim_serves_the_newest_generation_first(now: dt.datetime) -> None:
    project = factories.make_project()
    old, new = (queues.fill_lane(project, 1, arm="policy", generation=generation) for generation in (1, 2))
    assert queues.claim_all(factories.make_rater(project), now, chance=queues.POLICY) == [*new, *old]


def test_screening_comes_before_work(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1)
    screening = queues.fill_lane(project, 2, arm="screening", slots=50)
    rater = factories.make_rater(project, stage="screening")
    assert queues.claim_all(rater, now) == screening
    rater.screening_attempt = 2
    rater.save(update_fields=["screening_attempt"])
    assert queues.claim_all(rater, now) == screening
    assert set(Assignment.objects.values_list("purpose", "attempt")) == {("screening", 1), ("screening", 2)}


def test_screening_is_not_served_after_it_was_passed(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1, arm="screening", slots=50)
    with pytest.raises(queue.NothingLeft) as refusal:
        queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now)
    assert refusal.value.code == "empty"


def test_claim_finds_entries_above_the_cursor(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 3)
    rater = factories.make_rater(project)
    assert len(queues.claim_all(rater, now)) == 3
    added = queues.make_traces(project, 2)
    keys = {trace.pk: 1000 + trace.pk for trace in added}
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=list(keys), slots=1, now=now, keys=keys)
    assert set(queues.claim_all(rater, now)) == set(keys)


def test_claim_records_an_empty_lane(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1, arm="policy")
    queues.fill_lane(project, 4)
    rater = factories.make_rater(project)
    assert len(queues.claim_all(rater, now, chance=queues.POLICY)) == 5
    assert LaneCursor.objects.get(rater=rater).lane.arm == "policy"


def test_refilled_lane_is_searched_again(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1, arm="policy")
    queues.fill_lane(project, 4)
    rater = factories.make_rater(project)
    for _ in range(3):
        queues.submit_assignment(
            queue.claim_trace(rater_id=rater.pk, now=now, opened=True, chance=queues.POLICY).assignment_id, now
        )
    (more,) = queues.fill_lane(project, 1, arm="policy")
    assert queue.claim_trace(rater_id=rater.pk, now=now, chance=queues.POLICY).trace_id == more


def test_claim_lapses_leases_before_nothing_is_left(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1)
    first, second = queues.make_raters(project, 2)
    queue.claim_trace(rater_id=first.pk, now=now, opened=True)
    with pytest.raises(queue.NothingLeft) as refusal:
        queue.claim_trace(rater_id=second.pk, now=now)
    assert refusal.value.code == "assigned_to_others"
    assert refusal.value.free_at == now + dt.timedelta(minutes=30)
    claim = queue.claim_trace(rater_id=second.pk, now=now + dt.timedelta(hours=1))
    assert (claim.trace_id, claim.arm) == (trace, "top_up")
    assert queues.is_balanced([trace])


def test_nothing_left_names_the_end_of_the_first_lease(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1)
    first, second = queues.make_raters(project, 2)
    held = queue.claim_trace(rater_id=first.pk, now=now)
    with pytest.raises(queue.NothingLeft) as refusal:
        queue.claim_trace(rater_id=second.pk, now=now)
    assert refusal.value.free_at == held.lease_ends_at


def test_paused_removed_or_failed_rater_gets_no_trace(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1)
    paused = factories.make_rater(project, paused_at=now, paused_reason="Please read the guideline again.")
    removed = factories.make_rater(project, removed_at=now)
    failed = factories.make_rater(project, stage="failed")
    elsewhere = factories.make_rater(factories.make_project(state="paused"))
    for rater, refusal in [
        (paused, queue.RaterPaused),
        (removed, queue.RaterRemoved),
        (failed, queue.ScreeningNotPassed),
        (elsewhere, queue.ProjectNotOpen),
    ]:
        with pytest.raises(refusal):
            queue.claim_trace(rater_id=rater.pk, now=now)
    assert issubclass(queue.RaterPaused, queue.QueueRefusal)


def test_claim_is_one_statement(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 2)
    rater = factories.make_rater(project)
    with CaptureQueriesContext(connection) as queries:
        queue.claim_trace(rater_id=rater.pk, now=now)
    assert len([each for each in queries if "SAVEPOINT" not in (each["sql"] or "")]) == 1


def test_nothing_left_does_not_wait_for_gold(now: dt.datetime) -> None:
    """Returned gold is served only beside work, and no work is left."""
    project = factories.make_project()
    queues.fill_lane(project, 1)
    queues.fill_lane(project, 1, arm="gold", slots=1)
    other, rater = queues.make_raters(project, 2)
    shown = queue.claim_trace(rater_id=other.pk, now=now, opened=True, chance=queues.GOLD)
    assert shown.purpose == "gold"
    queues.submit_assignment(
        queue.claim_trace(rater_id=rater.pk, now=now, opened=True, chance=queues.UNIFORM).assignment_id, now
    )
    with pytest.raises(queue.NothingLeft) as refusal:
        queue.claim_trace(rater_id=rater.pk, now=now)
    assert refusal.value.free_at is None
