"""A skip returns a trace to the queue, as often as the project allows."""

import datetime as dt
from contextlib import nullcontext

import pytest

from events.models import Event
from labeling import assignments
from labeling.models import Assignment, Project, Rater
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient, current_ratings

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return factories.make_project(skip_limit_per_day=2)


@pytest.fixture
def rater(project: Project) -> Rater:
    return factories.make_rater(project)


def skip(rater: Rater, now: dt.datetime, assignment: Assignment | None = None) -> Assignment:
    assignment = assignment or factories.make_assignment(rater, factories.make_trace(rater.project))
    assignments.skip_trace(assignment_id=assignment.pk, rater_id=rater.pk, reason="too long", now=now, by=rater.user)
    assignment.refresh_from_db()
    return assignment


def test_skip_releases_the_trace_and_keeps_its_ratings(rater: Rater, now: dt.datetime) -> None:
    assignment = factories.make_assignment(rater, factories.make_trace(rater.project))
    WorkPageClient(assignment).rate([1])
    skip(rater, now, assignment)
    assert (assignment.state, assignment.holds_slot, assignment.ended_reason) == (
        "released",
        False,
        "skipped: too long",
    )
    assert current_ratings(assignment) == {(0, 0): 1}
    assert Event.objects.get(what="assignment.skipped").detail == {"reason": "too long"}


def test_skip_is_refused_at_the_daily_limit(rater: Rater, now: dt.datetime) -> None:
    skip(rater, now)
    skip(rater, now)
    with pytest.raises(assignments.SkipLimitReached) as refusal:
        skip(rater, now)
    assert refusal.value.limit == 2
    assert Assignment.objects.filter(rater=rater, state="released").count() == 2
    skip(rater, now + dt.timedelta(days=1))


@pytest.mark.parametrize("is_refused", [False, True])
def test_skip_records_the_edits_that_come_with_it(is_refused: bool, rater: Rater, now: dt.datetime) -> None:
    assignment = factories.make_assignment(rater, factories.make_trace(rater.project))
    client = WorkPageClient(assignment)
    if is_refused:
        skip(rater, now)
        skip(rater, now)
    with pytest.raises(assignments.SkipLimitReached) if is_refused else nullcontext():
        assignments.skip_trace(**client.place, writes=[client.write(0, -1)], reason="no", now=now, by=rater.user)
    assert current_ratings(assignment) == {(0, 0): -1}
    assignment.refresh_from_db()
    assert assignment.state == ("opened" if is_refused else "released")


def test_repeated_skip_changes_nothing(rater: Rater, now: dt.datetime) -> None:
    skipped = skip(rater, now)
    skip(rater, now, skipped)
    assert Event.objects.filter(what="assignment.skipped").count() == 1


def test_skip_needs_an_open_assignment(rater: Rater, now: dt.datetime) -> None:
    submitted = factories.make_submitted(rater, factories.make_trace(rater.project))
    with pytest.raises(assignments.AssignmentNotOpen):
        skip(rater, now, submitted)
    with pytest.raises(assignments.AssignmentUnknown):
        assignments.skip_trace(
            assignment_id=submitted.pk, rater_id=factories.make_rater(rater.project).pk, reason="", now=now, by=None
        )
