"""Retraining repeats the guideline, the training and the screening."""

import datetime as dt

import pytest

from events.models import Event
from labeling import gold_sets, onboarding, queue, raters
from labeling.models import Assignment, Rater
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterStage
from labeling.projects import lifecycle
from tests import factories
from tests.labeling import onboarding_project

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("has_set", [True, False])
def test_retraining_requires_guideline_and_screening(has_set: bool) -> None:
    project = factories.make_project()
    by = factories.make_user()
    guideline = lifecycle.publish_guideline(project=project, body="Read.", by=None, now=factories.NOW)
    rater = factories.make_rater(project)
    onboarding.acknowledge_guideline(rater=rater, guideline=guideline, by=by, now=factories.NOW)
    if has_set:
        factories.make_entry(factories.make_lane(project, arm="screening"), factories.make_trace(project), slots=50)
    raters.pause_rater(rater=rater, reason="See me.", by=by, now=factories.NOW)
    onboarding.require_retraining(rater_id=rater.pk, by=by, now=factories.NOW)
    rater.refresh_from_db()
    assert (rater.read_guideline, rater.paused_at) == (None, None)
    assert (rater.stage, rater.screening_attempt) == ((RaterStage.SCREENING, 1) if has_set else (RaterStage.WORKING, 1))
    assert Event.objects.filter(what="training.asked_again", by=by.pk).exists()


@pytest.mark.fault
def test_retraining_serves_both_sets_again(now: dt.datetime) -> None:
    """Every trace of both sets is served again, as a new attempt."""
    project = onboarding_project.make_project(training=2, screening=1, work=2, screening_attempts=1)
    rater = factories.make_rater(project, stage="training")
    assert rater.user is not None
    for _ in range(2):
        onboarding_project.finish_training_trace(rater, now)
    onboarding_project.rate_next(rater, now)
    assert onboarding_project.current_stage(rater) == "working"
    onboarding_project.rate_next(rater, now)
    held = queue.claim_trace(rater_id=rater.pk, now=now)
    raters.pause_rater(rater=rater, reason="See me.", by=None, now=now)
    onboarding.require_retraining(rater_id=rater.pk, by=rater.user, now=now)
    assert (onboarding_project.current_stage(rater), rater.training_attempt, rater.screening_attempt) == (
        "training",
        2,
        2,
    )
    assert Assignment.objects.get(pk=held.assignment_id).state == "released"
    assert gold_sets.load_set_progress(rater=rater, purpose=AssignmentPurpose.TRAINING) == (0, 2)
    for _ in range(2):
        onboarding_project.finish_training_trace(rater, now)
    assert onboarding_project.current_stage(rater) == "screening"
    onboarding_project.rate_next(rater, now, first_error=0)
    assert onboarding_project.current_stage(rater) == "failed"
    attempts = Assignment.objects.filter(rater=rater, purpose="training").values_list("attempt", flat=True)
    assert sorted(attempts) == [1, 1, 2, 2]
    told = Event.objects.filter(what="training.finished").order_by("pk").values_list("detail", flat=True)
    assert list(told) == [{"n_traces": 2, "attempt": 1}, {"n_traces": 2, "attempt": 2}]


def test_retraining_during_training_starts_over(now: dt.datetime) -> None:
    """An open trace is finished first, and served again afterward."""
    project = onboarding_project.make_project(training=2)
    rater = factories.make_rater(project, stage="training")
    assert rater.user is not None
    onboarding_project.finish_training_trace(rater, now)
    opened = onboarding_project.claim_next(rater, now)
    onboarding.require_retraining(rater_id=rater.pk, by=rater.user, now=now)
    assert gold_sets.load_set_progress(rater=road_of(rater), purpose=AssignmentPurpose.TRAINING).done == 0
    onboarding_project.finish_training_trace(rater, now)  # the other one; the open one must be finished first
    assert onboarding_project.current_stage(rater) == "training"
    onboarding_project.submit_assignment(opened.assignment_id, rater, now)
    onboarding.acknowledge_feedback(assignment_id=opened.assignment_id, rater_id=rater.pk, by=rater.user, now=now)
    onboarding_project.finish_training_trace(rater, now)
    assert onboarding_project.current_stage(rater) == "working"


def road_of(rater: Rater) -> Rater:
    rater.refresh_from_db()
    return rater
