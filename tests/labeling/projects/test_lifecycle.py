"""Projects, their guidelines and their states."""

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError

from events.models import Event
from labeling import queue
from labeling.models import Assignment, Guideline, Project
from labeling.models.assignment import AssignmentState
from labeling.models.project import ProjectState
from labeling.projects import lifecycle, rating_rules, taxonomies, trace_questions
from tests import factories
from tests.concurrency import run_at_once

pytestmark = pytest.mark.django_db


def test_create_refuses_a_taken_slug(now: dt.datetime) -> None:
    lifecycle.create_project(name="Sums", slug="sums", by=None, now=now)
    with pytest.raises(lifecycle.ProjectSlugTaken):
        lifecycle.create_project(name="Sums again", slug="sums", by=None, now=now)
    assert Event.objects.filter(what="project.created").count() == 1
    with pytest.raises(IntegrityError):  # which is another matter
        lifecycle.create_project(name="Other sums", slug="other", by=None, now=now, overlap=0)


def test_publish_guideline_makes_the_next_version(now: dt.datetime) -> None:
    project, anna = factories.make_project(), factories.make_user()
    first = lifecycle.publish_guideline(project=project, body="Rate.", by=anna, now=now)
    second = lifecycle.publish_guideline(project=project, body="Rate well.", by=anna, now=now)
    project.refresh_from_db()
    assert (first.version, second.version, project.guideline) == (1, 2, second)
    assert list(Event.objects.order_by("id").values_list("what", "by", "detail")) == [
        ("guideline.published", anna.pk, {"version": 1}),
        ("guideline.published", anna.pk, {"version": 2}),
    ]


@pytest.mark.usefixtures("real_connections")
def test_concurrent_publishes_make_one_version_each(now: dt.datetime) -> None:
    project = factories.make_project()
    run_at_once(
        *[partial(lifecycle.publish_guideline, project=project, body=str(n), by=None, now=now) for n in range(4)]
    )
    assert sorted(Guideline.objects.values_list("version", flat=True)) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("before", "to"),
    [
        ("open", ProjectState.PAUSED),
        ("paused", ProjectState.OPEN),
        ("closed", ProjectState.OPEN),
        ("open", ProjectState.CLOSED),
        ("archived", ProjectState.CLOSED),
        ("closed", ProjectState.ARCHIVED),
    ],
)
def test_allowed_state_changes(before: str, to: ProjectState, now: dt.datetime) -> None:
    project = factories.make_project(state=before)
    lifecycle.change_project_state(project=project, to=to, by=None, now=now)
    project.refresh_from_db()
    assert project.state == to
    assert Event.objects.count() == 1


@pytest.mark.parametrize(
    ("to", "before"),
    [
        (ProjectState.ARCHIVED, ProjectState.OPEN),  # it must be closed first
        (ProjectState.OPEN, ProjectState.ARCHIVED),
        (ProjectState.PAUSED, ProjectState.PAUSED),
    ],
)
def test_other_state_changes_are_refused(to: ProjectState, before: str, now: dt.datetime) -> None:
    project = factories.make_project(state=before)
    with pytest.raises(lifecycle.ProjectTransitionRefused):
        lifecycle.change_project_state(project=project, to=to, by=None, now=now)
    project.refresh_from_db()
    assert project.state == before
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    "verb",
    [
        partial(lifecycle.change_project_state, to=ProjectState.PAUSED),
        partial(lifecycle.change_project_state, to=ProjectState.CLOSED),
        partial(lifecycle.publish_guideline, body="Rate."),
    ],
)
def test_held_traces_are_released(verb: Callable[..., Any], now: dt.datetime) -> None:
    project = factories.make_project()
    rater = factories.make_rater(project)
    factories.make_entry(factories.make_lane(project), factories.make_trace(project))
    held = queue.claim_trace(rater_id=rater.pk, now=now)
    opened = factories.make_assignment(rater, factories.make_trace(project))
    verb(project=project, by=None, now=now)
    assert Assignment.objects.get(pk=held.assignment_id).state == AssignmentState.RELEASED
    assert Assignment.objects.get(pk=opened.pk).state == AssignmentState.OPENED


def current_guideline(project: Project) -> Guideline:
    assert project.guideline is not None
    return project.guideline


def test_changed_taxonomy_is_the_next_version_of_the_guideline(now: dt.datetime) -> None:
    project = factories.make_project()
    rules = rating_rules.copy_template("math")
    lifecycle.change_settings(project=project, by=None, now=now, rating_rules=rules, asks_severity=True)
    assert not project.guidelines.exists()  # there is no guideline that it could be a version of
    lifecycle.publish_guideline(project=project, body="Rate.", by=None, now=now)
    assert taxonomies.parse_taxonomy(current_guideline(project).taxonomy) == taxonomies.load_taxonomy(project)
    lifecycle.change_settings(project=project, by=None, now=now, rating_rules={**rules, "negative": "Bad."})
    kinds = [*rules["kinds"][1:], ["new", "New kind", "A hint."]]
    lifecycle.change_settings(project=project, by=None, now=now, rating_rules={**rules, "kinds": kinds})
    assert current_guideline(project).version == 1  # raters are not asked for the kind
    questions = trace_questions.store_questions(trace_questions.QUESTION_TEMPLATES["math"].questions)
    lifecycle.change_settings(project=project, by=None, now=now, asks_error_category=True, trace_questions=questions)
    assert (current_guideline(project).version, current_guideline(project).body) == (2, "Rate.")
    assert "New kind" in current_guideline(project).changes
    lifecycle.change_settings(
        project=project, by=None, now=now, rating_rules={**rules, "severities": ["a", "b", "c"]}, trace_questions=[]
    )
    found = [taxonomies.parse_taxonomy(each.taxonomy) for each in project.guidelines.order_by("version")]
    assert [len(each.kinds) for each in found] == [0, 5, 5]
    assert [len(each.questions) for each in found] == [0, 1, 0]
    assert found[1].kinds[-1] == rating_rules.ErrorKind("new", "New kind", "A hint.")
    assert found[2].severities == ("a", "b", "c")
    clone = lifecycle.clone_project(project=project, name="c", slug="c", by=None, now=now)
    assert current_guideline(clone).version == 1
    assert current_guideline(clone).taxonomy == current_guideline(project).taxonomy
