"""After each training trace its answer is looked at, then comes the next; after the last the screening, or the work."""

import datetime as dt

import pytest

from events.models import Event
from labeling import admission, judging, raters
from labeling.models import Assignment, Lesson, Submission
from labeling.models.quality import GoldUse
from labeling.queue import leases
from tests import factories
from tests.labeling.admission import road

pytestmark = pytest.mark.django_db


def test_training_goes_lesson_by_lesson_into_the_work(now: dt.datetime) -> None:
    project = road.make_project(training=2, work=1)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    first = road.rate(rater, now, first_error=0)
    assert (first.purpose, road.stage(rater), road.refused(rater, now)) == ("training", "lesson", "lesson")
    assert rater.user is not None
    admission.read_lesson(assignment_id=first.pk, rater_id=rater.pk, by=rater.user, now=now)
    assert road.stage(rater) == "training"
    road.learn(rater, now)
    assert road.stage(rater) == "working"
    assert road.claim(rater, now).purpose == "work"
    assert Event.objects.get(what="training.finished").detail == {"n_traces": 2, "attempt": 1}
    # Looking at an answer again moves nobody.
    admission.read_lesson(assignment_id=first.pk, rater_id=rater.pk, by=rater.user, now=now + dt.timedelta(1))
    assert road.stage(rater) == "working"
    assert set(Lesson.objects.values_list("read_at", flat=True)) == {now}


def test_training_leads_to_the_screening_where_there_is_one(now: dt.datetime) -> None:
    project = road.make_project(training=1, screening=2)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    road.learn(rater, now)
    assert road.claim(rater, now).purpose == "screening"


def test_every_rater_gets_the_same_traces(now: dt.datetime) -> None:
    project = road.make_project(training=2)
    seen = []
    for _ in range(3):
        rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
        for _ in range(2):
            road.learn(rater, now)
        seen.append(list(Assignment.objects.filter(rater=rater).order_by("pk").values_list("trace_id", flat=True)))
    assert seen[0] == seen[1] == seen[2]


def test_trace_of_a_set_neither_lapses_nor_is_skipped_nor_reopened(now: dt.datetime) -> None:
    """Nobody else waits for it, and it comes once: what lapsed would be a dead end."""
    project = road.make_project(training=1)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    claimed = road.claim(rater, now).assignment_id
    tomorrow = now + dt.timedelta(days=1)
    assert leases.lapse_due(now=tomorrow) == 0
    with pytest.raises(judging.NotToBeSkipped):
        judging.skip(assignment_id=claimed, rater_id=rater.pk, reason="no", now=tomorrow, by=rater.user)
    road.submit(claimed, rater, tomorrow)
    assert Submission.objects.count() == 1
    with pytest.raises(judging.CannotReopen):
        judging.reopen(assignment_id=claimed, rater_id=rater.pk, now=tomorrow, by=rater.user)


def test_who_works_already_goes_on_when_a_set_is_put_up(now: dt.datetime) -> None:
    project = road.make_project(work=1)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    road.put_up(project, GoldUse.TRAINING, 1)
    assert road.claim(rater, now).purpose == "work"


def test_lead_admits_somebody_without_training(now: dt.datetime) -> None:
    project = road.make_project(training=1, work=1)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    admission.admit(rater_id=rater.pk, by=None, now=now)
    admission.admit(rater_id=rater.pk, by=None, now=now)
    assert road.claim(rater, now).purpose == "work"
    assert Event.objects.get(what="rater.admitted").detail == {"from_stage": "training"}
