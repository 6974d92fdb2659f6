"""How long a rater keeps a trace, and how it returns to the queue."""

import datetime as dt

import pytest

from events.models import Event
from labeling import queue
from labeling.models import Assignment, Guideline, Project, QueueEntry, Rater
from tests import factories
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db


def state_of(claim: queue.Claim) -> str:
    return Assignment.objects.get(pk=claim.assignment_id).state


def test_open_held_fixes_the_guideline_and_what_is_shown(now: dt.datetime) -> None:
    project = factories.make_project(shows_reference_answer=True)
    guideline = Guideline.objects.create(project=project, version=1, body="Be fair.", published_at=now)
    queues.fill_lane(project, 1)
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now)
    Project.objects.filter(pk=project.pk).update(guideline=guideline)
    Rater.objects.filter(pk=rater.pk).update(read_guideline=guideline)
    later = now + dt.timedelta(minutes=1)
    queue.open_assignment(assignment_id=claim.assignment_id, rater_id=rater.pk, now=later)
    opened = Assignment.objects.get()
    assert (opened.state, opened.opened_at, opened.guideline) == ("opened", later, guideline)
    assert (opened.saw_reference_answer, opened.saw_final_verdict) == (True, False)
    assert opened.lease_ends_at == later + dt.timedelta(seconds=project.lease_seconds)


def test_open_held_twice_changes_nothing(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1)
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now)
    for minutes in (1, 2):
        queue.open_assignment(
            assignment_id=claim.assignment_id, rater_id=rater.pk, now=now + dt.timedelta(minutes=minutes)
        )
    assert Assignment.objects.get().opened_at == now + dt.timedelta(minutes=1)


def test_open_of_a_lapsed_trace_is_refused(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1)
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now)
    queue.release_held(rater_id=rater.pk, now=now, reason="page closed", by=None)
    with pytest.raises(queue.AssignmentLeaseLost):
        queue.open_assignment(assignment_id=claim.assignment_id, rater_id=rater.pk, now=now)


def test_open_is_refused_while_the_project_is_paused(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1)
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now)
    Project.objects.filter(pk=project.pk).update(state="paused")
    with pytest.raises(queue.ProjectNotOpen):
        queue.open_assignment(assignment_id=claim.assignment_id, rater_id=rater.pk, now=now)
    assert state_of(claim) == "held"


def test_open_is_only_for_its_rater(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1)
    rater, other = queues.make_raters(project, 2)
    claim = queue.claim_trace(rater_id=rater.pk, now=now)
    with pytest.raises(queue.AssignmentLeaseLost):
        queue.open_assignment(assignment_id=claim.assignment_id, rater_id=other.pk, now=now)


def test_release_returns_the_slot_once(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1, slots=2)
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=now, opened=True)
    assert queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="too hard", by=rater.user)
    assert not queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="too hard", by=rater.user)
    assert dict(QueueEntry.objects.values_list("lane__arm", "slots_left")) == {"uniform": 1, "top_up": 1}
    assert queues.is_balanced([trace])
    event = Event.objects.get(what="assignment.released")
    assert (event.by, event.subject, event.detail) == (
        rater.user.pk if rater.user else None,
        f"assignment:{claim.assignment_id}",
        {"reason": "too hard"},
    )


def test_released_gold_returns_to_its_lane(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1, arm="gold", slots=50)
    queues.fill_lane(project, 1)
    claim = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now, chance=queues.GOLD)
    queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="skipped", by=None)
    assert dict(QueueEntry.objects.values_list("lane__arm", "slots_left")) == {"gold": 50, "uniform": 1}


def test_release_held_ignores_opened_traces(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 2)
    first, second = queues.make_raters(project, 2)
    held = queue.claim_trace(rater_id=first.pk, now=now)
    opened = queue.claim_trace(rater_id=second.pk, now=now, opened=True)
    assert queue.release_held(project_id=project.pk, now=now, reason="paused", by=None) == 1
    assert (state_of(held), state_of(opened)) == ("released", "opened")
    with pytest.raises(ValueError, match="project"):
        queue.release_held(now=now, reason="?", by=None)


def test_only_expired_leases_lapse(now: dt.datetime) -> None:
    project, other = factories.make_project(), factories.make_project()
    traces = queues.fill_lane(project, 2)
    queues.fill_lane(other, 1)
    first, second = queues.make_raters(project, 2)
    held = queue.claim_trace(rater_id=first.pk, now=now)
    opened = queue.claim_trace(rater_id=second.pk, now=now, opened=True)
    elsewhere = queue.claim_trace(rater_id=factories.make_rater(other).pk, now=now)
    later = now + dt.timedelta(minutes=10)
    assert queue.lapse_expired_leases(now=later, project_id=project.pk) == 1
    assert [state_of(claim) for claim in (held, opened, elsewhere)] == ["lapsed", "opened", "held"]
    assert queue.lapse_expired_leases(now=later) == 1
    assert queue.lapse_expired_leases(now=now + dt.timedelta(hours=1)) == 1
    assert queues.is_balanced(traces)


def test_lapse_respects_its_limit(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 3)
    for rater in queues.make_raters(project, 3):
        queue.claim_trace(rater_id=rater.pk, now=now)
    assert queue.lapse_expired_leases(now=now + dt.timedelta(hours=1), limit=2) == 2
    assert queue.lapse_expired_leases(now=now + dt.timedelta(hours=1)) == 1


def test_reclaim_leaves_a_notice_until_it_is_read(now: dt.datetime) -> None:
    project, lead = factories.make_project(), factories.make_user()
    traces = queues.fill_lane(project, 2)
    first, second = queues.make_raters(project, 2)
    opened = queue.claim_trace(rater_id=first.pk, now=now, opened=True).assignment_id
    held = queue.claim_trace(rater_id=second.pk, now=now).assignment_id
    assert [queue.reclaim_assignment(assignment_id=pk, now=now, by=lead) for pk in (opened, held, held)] == [
        True,
        True,
        False,
    ]
    assert list(Assignment.objects.filter(is_end_news=True).values_list("pk", flat=True)) == [opened]
    reader = first.user
    assert reader
    told = [
        queue.acknowledge_reclaim(assignment_id=opened, rater_id=rater.pk, now=now, by=reader)
        for rater in (second, first, first)
    ]
    assert told == [False, True, False]
    assert Event.objects.filter(what="assignment.end_known", subject=f"assignment:{opened}").count() == 1
    assert queues.is_balanced(traces)


def test_lapse_leaves_a_notice_only_after_edits(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 2)
    touched, untouched = (
        queue.claim_trace(rater_id=rater.pk, now=now, opened=True).assignment_id
        for rater in queues.make_raters(project, 2)
    )
    Assignment.objects.filter(pk=touched).update(version=1)
    assert queue.lapse_expired_leases(now=now + dt.timedelta(hours=1)) == 2
    assert dict(Assignment.objects.values_list("pk", "is_end_news")) == {touched: True, untouched: False}


def test_release_by_the_rater_leaves_no_notice(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 1)
    claim = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now, opened=True)
    queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="skipped: too hard", by=None)
    assert not Assignment.objects.get().is_end_news
