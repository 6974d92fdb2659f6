"""Projects, their guidelines and whether work goes on."""

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError

from events.models import Event
from labeling import projects, queue
from labeling.models import Assignment, Guideline
from labeling.models.assignment import AssignmentState
from labeling.models.project import ProjectState
from tests import factories
from tests.together import at_once

pytestmark = pytest.mark.django_db


def test_create_says_that_an_address_is_taken(now: dt.datetime) -> None:
    projects.create(name="Sums", slug="sums", by=None, now=now)
    with pytest.raises(projects.AddressIsTaken):
        projects.create(name="Sums again", slug="sums", by=None, now=now)
    assert Event.objects.filter(what="project.created").count() == 1
    with pytest.raises(IntegrityError):  # which is another matter
        projects.create(name="Other sums", slug="other", by=None, now=now, overlap=0)


def test_publish_guideline_makes_the_next_version(now: dt.datetime) -> None:
    project, anna = factories.make_project(), factories.make_user()
    first = projects.publish_guideline(project=project, body="Rate.", by=anna, now=now)
    second = projects.publish_guideline(project=project, body="Rate well.", by=anna, now=now)
    project.refresh_from_db()
    assert (first.version, second.version, project.guideline) == (1, 2, second)
    assert list(Event.objects.order_by("id").values_list("what", "by", "detail")) == [
        ("guideline.published", anna.pk, {"version": 1}),
        ("guideline.published", anna.pk, {"version": 2}),
    ]


@pytest.mark.usefixtures("real_connections")
def test_publish_guideline_at_once_makes_one_version_each(now: dt.datetime) -> None:
    project = factories.make_project()
    at_once(*[partial(projects.publish_guideline, project=project, body=str(n), by=None, now=now) for n in range(4)])
    assert sorted(Guideline.objects.values_list("version", flat=True)) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("verb", "before", "after"),
    [
        (projects.pause, "open", "paused"),
        (projects.resume, "paused", "open"),
        (projects.resume, "closed", "open"),
        (projects.close, "open", "closed"),
        (projects.close, "archived", "closed"),
        (projects.archive, "closed", "archived"),
    ],
)
def test_states_move(verb: Callable[..., Any], before: str, after: str, now: dt.datetime) -> None:
    project = factories.make_project(state=before)
    verb(project=project, by=None, now=now)
    project.refresh_from_db()
    assert project.state == after
    assert Event.objects.count() == 1


@pytest.mark.parametrize(
    ("verb", "before"),
    [
        (projects.archive, ProjectState.OPEN),  # closed first: corrections end, and somebody looks
        (projects.resume, ProjectState.ARCHIVED),
        (projects.pause, ProjectState.PAUSED),
    ],
)
def test_states_do_not_jump(verb: Callable[..., Any], before: str, now: dt.datetime) -> None:
    project = factories.make_project(state=before)
    with pytest.raises(projects.StateIsDifferent, match="cannot become"):
        verb(project=project, by=None, now=now)
    project.refresh_from_db()
    assert project.state == before
    assert not Event.objects.exists()


@pytest.mark.parametrize("verb", [projects.pause, projects.close, partial(projects.publish_guideline, body="Rate.")])
def test_what_was_fetched_ahead_goes_back(verb: Callable[..., Any], now: dt.datetime) -> None:
    project = factories.make_project()
    rater = factories.make_rater(project)
    factories.make_entry(factories.make_lane(project), factories.make_trace(project))
    held = queue.claim(rater_id=rater.pk, now=now)
    opened = factories.make_assignment(rater, factories.make_trace(project))
    verb(project=project, by=None, now=now)
    assert Assignment.objects.get(pk=held.assignment_id).state == AssignmentState.RELEASED
    assert Assignment.objects.get(pk=opened.pk).state == AssignmentState.OPENED
