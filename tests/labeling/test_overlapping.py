"""Changing the overlap: said before, done by a job, settled anew."""

import pytest

from events.models import Event
from jobs import runner
from jobs.models import Job
from labeling import overlapping, projects
from labeling.models import QueueEntry, Settlement
from tests import factories

pytestmark = pytest.mark.django_db


def test_change_reaches_every_open_trace(django_capture_on_commit_callbacks: object) -> None:
    project = factories.make_project(overlap=2)
    lane = factories.make_lane(project)
    traces = [factories.make_trace(project) for _ in range(45)]
    for trace in traces:
        factories.make_entry(lane, trace, slots=2)
    Settlement.objects.create(trace=traces[0], project=project, state="reading", changed_at=factories.NOW, is_due=False)
    assert overlapping.open_work(project_id=project.pk) == (0, 45, False)
    asked = overlapping.change(
        project=project, overlap=3, overlap_limit=6, lease_seconds=1800, by=None, now=factories.NOW
    )
    assert asked is not None
    assert runner.run(asked.pk, overlapping.chunks, sleep=lambda _: None) == "done"
    assert set(QueueEntry.objects.values_list("slots", "slots_left")) == {(3, 3)}
    assert Settlement.objects.get().is_due
    project.refresh_from_db()
    assert (project.overlap, project.overlap_limit) == (3, 6)
    assert (asked.kind, Job.objects.get().done) == (overlapping.KIND, 45)


def test_change_of_the_lease_alone_asks_for_no_work() -> None:
    project = factories.make_project()
    changed = {"overlap": 2, "overlap_limit": 5, "lease_seconds": 600}
    assert overlapping.change(project=project, by=None, now=factories.NOW, **changed) is None
    assert Event.objects.get(what="project.changed").detail == {
        "lease_seconds": [1800, 600],
    }
    project.refresh_from_db()
    assert project.lease_seconds == 600


def test_protocol_stays_once_traces_were_given_out() -> None:
    project = factories.make_project()
    projects.change(project=project, protocol="every_step", by=None, now=factories.NOW)
    rater = factories.make_rater(project)
    factories.make_assignment(rater, factories.make_trace(project))
    with pytest.raises(projects.NotChangeable):
        projects.change(project=project, protocol="first_error", by=None, now=factories.NOW)
    with pytest.raises(ValueError, match="slug"):
        projects.change(project=project, slug="other", by=None, now=factories.NOW)
