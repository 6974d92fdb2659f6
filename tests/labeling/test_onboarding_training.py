"""After each training trace the rater reads its feedback, then gets the next one; after the last one, screening or work
follows."""

import datetime as dt

import pytest

from events.models import Event
from labeling import assignments, onboarding, raters
from labeling.models import Assignment, Submission, TrainingFeedback
from labeling.models.gold import GoldUse
from labeling.queue import leases
from tests import factories
from tests.labeling import onboarding_project

pytestmark = pytest.mark.django_db


def test_training_gives_feedback_after_each_trace(now: dt.datetime) -> None:
    project = onboarding_project.make_project(training=2, work=1)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    first = onboarding_project.rate_next(rater, now, first_error=0)
    assert (
        first.purpose,
        onboarding_project.current_stage(rater),
        onboarding_project.refusal_of_claim(rater, now),
    ) == ("training", "lesson", "lesson")
    assert rater.user is not None
    onboarding.acknowledge_feedback(assignment_id=first.pk, rater_id=rater.pk, by=rater.user, now=now)
    assert onboarding_project.current_stage(rater) == "training"
    onboarding_project.finish_training_trace(rater, now)
    assert onboarding_project.current_stage(rater) == "working"
    assert onboarding_project.claim_next(rater, now).purpose == "work"
    assert Event.objects.get(what="training.finished").detail == {"n_traces": 2, "attempt": 1}
    # Reading feedback again does not change the stage.
    onboarding.acknowledge_feedback(assignment_id=first.pk, rater_id=rater.pk, by=rater.user, now=now + dt.timedelta(1))
    assert onboarding_project.current_stage(rater) == "working"
    assert set(TrainingFeedback.objects.values_list("read_at", flat=True)) == {now}


def test_training_leads_to_the_screening(now: dt.datetime) -> None:
    project = onboarding_project.make_project(training=1, screening=2)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    onboarding_project.finish_training_trace(rater, now)
    assert onboarding_project.claim_next(rater, now).purpose == "screening"


def test_every_rater_gets_the_same_traces(now: dt.datetime) -> None:
    project = onboarding_project.make_project(training=2)
    seen = []
    for _ in range(3):
        rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
        for _ in range(2):
            onboarding_project.finish_training_trace(rater, now)
        seen.append(list(Assignment.objects.filter(rater=rater).order_by("pk").values_list("trace_id", flat=True)))
    assert seen[0] == seen[1] == seen[2]


def test_trace_of_a_set_neither_lapses_nor_is_skipped_nor_reopened(now: dt.datetime) -> None:
    """No one else waits for it, and it is served once: a lapse would block the rater."""
    project = onboarding_project.make_project(training=1)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    claimed = onboarding_project.claim_next(rater, now).assignment_id
    tomorrow = now + dt.timedelta(days=1)
    assert leases.lapse_expired_leases(now=tomorrow) == 0
    with pytest.raises(assignments.SkipNotAllowed):
        assignments.skip_trace(assignment_id=claimed, rater_id=rater.pk, reason="no", now=tomorrow, by=rater.user)
    onboarding_project.submit_assignment(claimed, rater, tomorrow)
    assert Submission.objects.count() == 1
    with pytest.raises(assignments.CorrectionRefused):
        assignments.reopen_submission(assignment_id=claimed, rater_id=rater.pk, now=tomorrow, by=rater.user)


def test_new_set_does_not_interrupt_working_raters(now: dt.datetime) -> None:
    project = onboarding_project.make_project(work=1)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    onboarding_project.add_gold_trace(project, GoldUse.TRAINING, 1)
    assert onboarding_project.claim_next(rater, now).purpose == "work"


def test_lead_admits_a_rater_without_training(now: dt.datetime) -> None:
    project = onboarding_project.make_project(training=1, work=1)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    onboarding.admit_rater(rater_id=rater.pk, by=None, now=now)
    onboarding.admit_rater(rater_id=rater.pk, by=None, now=now)
    assert onboarding_project.claim_next(rater, now).purpose == "work"
    assert Event.objects.get(what="rater.admitted").detail == {"from_stage": "training"}
