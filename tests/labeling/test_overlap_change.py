"""A change of the overlap: its impact, the job, and the new resolution of traces."""

import datetime as dt
from typing import Any

import pytest

from events.models import Event
from jobs import runner
from jobs.models import Job
from labeling import assignments, overlap_change
from labeling.models import QueueEntry, Settlement
from labeling.projects import lifecycle
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db


def test_change_reaches_every_open_trace(django_capture_on_commit_callbacks: object) -> None:
    project = factories.make_project(overlap=2)
    lane = factories.make_lane(project)
    traces = [factories.make_trace(project) for _ in range(45)]
    for trace in traces:
        factories.make_entry(lane, trace, slots=2)
    Settlement.objects.create(trace=traces[0], project=project, state="reading", changed_at=factories.NOW, is_due=False)
    assert overlap_change.measure_overlap_impact(project_id=project.pk) == (0, 0, 0, 0, 0, 45, False)
    asked = overlap_change.change_overlap(
        project=project, overlap=3, overlap_limit=6, lease_seconds=1800, by=None, now=factories.NOW
    )
    assert asked is not None
    assert runner.run_job(asked.pk, overlap_change.chunks) == "done"
    assert set(QueueEntry.objects.values_list("slots", "slots_left")) == {(3, 3)}
    assert Settlement.objects.get().is_due
    project.refresh_from_db()
    assert (project.overlap, project.overlap_limit) == (3, 6)
    assert (asked.kind, Job.objects.get().done) == (overlap_change.KIND, 45)


def test_impact_counts_open_work() -> None:
    project = factories.make_project()
    one, other = factories.make_rater(project), factories.make_rater(project)
    begun = factories.make_assignment(one, factories.make_trace(project))
    WorkPageClient(begun).rate([1])
    factories.make_assignment(one, factories.make_trace(project))  # opened, nothing rated
    factories.make_assignment(other, factories.make_trace(project), state="held")
    done = submitted_work.submit_trace(other, factories.make_trace(project), [1, 1, 1])
    assignments.reopen_submission(assignment_id=done.pk, rater_id=other.pk, now=factories.NOW, by=None)
    factories.make_entry(factories.make_lane(project), factories.make_trace(project))
    elsewhere = factories.make_project()
    factories.make_assignment(factories.make_rater(elsewhere), factories.make_trace(elsewhere))
    found = overlap_change.measure_overlap_impact(project_id=project.pk)
    assert found._asdict() == {
        "in_hand": 3,
        "ahead": 1,
        "begun": 1,
        "people": 2,
        "correcting": 1,
        "waiting": 1,
        "is_more": False,
    }
    assert overlap_change.measure_overlap_impact(project_id=project.pk, at_most=2).is_more


@pytest.mark.parametrize(("minutes", "after_a_rating"), [(10, 30), (60, 60)])
def test_open_assignment_gets_a_longer_lease_with_its_next_rating(minutes: int, after_a_rating: int) -> None:
    project = factories.make_project()
    assignment = factories.make_assignment(factories.make_rater(project), factories.make_trace(project))
    changed: dict[str, Any] = {"overlap": 2, "overlap_limit": 5, "lease_seconds": 60 * minutes}
    overlap_change.change_overlap(project=project, by=None, now=factories.NOW, **changed)
    for kept in (30, after_a_rating):
        assignment.refresh_from_db()
        assert assignment.lease_ends_at == factories.NOW + dt.timedelta(minutes=kept)
        WorkPageClient(assignment, f"window {kept}").rate([1], now=factories.NOW)


def test_lease_change_needs_no_job() -> None:
    project = factories.make_project()
    changed: dict[str, Any] = {"overlap": 2, "overlap_limit": 5, "lease_seconds": 600}
    assert overlap_change.change_overlap(project=project, by=None, now=factories.NOW, **changed) is None
    assert Event.objects.get(what="project.changed").detail == {
        "lease_seconds": [1800, 600],
    }
    project.refresh_from_db()
    assert project.lease_seconds == 600


def test_protocol_is_fixed_once_traces_were_assigned() -> None:
    project = factories.make_project()
    lifecycle.change_settings(project=project, protocol="every_step", by=None, now=factories.NOW)
    rater = factories.make_rater(project)
    factories.make_assignment(rater, factories.make_trace(project))
    with pytest.raises(lifecycle.SettingNotChangeable):
        lifecycle.change_settings(project=project, protocol="first_error", by=None, now=factories.NOW)
    with pytest.raises(ValueError, match="slug"):
        lifecycle.change_settings(project=project, slug="other", by=None, now=factories.NOW)
