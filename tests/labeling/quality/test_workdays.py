"""Work days: time and submissions per rater and day."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from labeling.models import Submission, WorkDay
from labeling.quality import workdays
from tests import factories

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def test_workdays_have_active_and_paid_time() -> None:
    project = factories.make_project()
    one, other = factories.make_rater(project), factories.make_rater(project)
    long_ago = NOW - dt.timedelta(days=400)
    factories.make_submitted(one, factories.make_trace(project), ms=1000, submitted_at=long_ago)
    factories.make_submitted(one, factories.make_trace(project), ms=200, submitted_at=NOW)
    factories.make_submitted(one, factories.make_trace(project), ms=30, submitted_at=NOW, purpose="gold")
    factories.make_submitted(other, factories.make_trace(project), ms=None, submitted_at=NOW)
    imported = {"origin": "imported", "submitted_at": NOW}
    factories.make_submitted(other, factories.make_trace(project), ms=7000, **imported)
    assert workdays.update_workdays(project_id=project.pk, now=NOW) == 0
    assert workdays.sum_time_by_day(project.pk) == [
        {"day": "2025-10-14", "readings": 1, "active_ms": 1000, "paid_ms": 1000},
        {"day": "2026-11-18", "readings": 2, "active_ms": 200, "paid_ms": 230},
    ]
    assert workdays.sum_time_by_rater(project.pk) == {one.pk: (1200, 1230), other.pk: (0, 0)}


def test_work_since_a_day_by_rater() -> None:
    project = factories.make_project()
    one, other = factories.make_rater(project), factories.make_rater(project)
    for rater, days, ms in ((one, 20, 5), (one, 3, 1000), (one, 3, 500), (other, 0, 40)):
        at = NOW - dt.timedelta(days=days)
        factories.make_submitted(rater, factories.make_trace(project), ms=ms, submitted_at=at)
    workdays.update_workdays(project_id=project.pk, now=NOW)
    today = NOW.date()
    mine = {one.pk: {today - dt.timedelta(days=3): (2, 1500)}}
    first = today - dt.timedelta(days=13)
    assert workdays.load_work_since(project.pk, first) == mine | {other.pk: {today: (1, 40)}}
    assert workdays.load_work_since(project.pk, first, rater_id=one.pk) == mine


def test_update_recounts_the_last_day_and_the_nightly_job_all() -> None:
    project = factories.make_project()
    rater = factories.make_rater(project)
    days = [NOW - dt.timedelta(days=n) for n in (2, 1, 0)]
    made = [factories.make_submitted(rater, factories.make_trace(project), ms=10, submitted_at=day) for day in days]
    workdays.update_workdays(project_id=project.pk, now=NOW)
    corrected = {"project": project, "revision": 2, "submitted_at": NOW, "total_ms": 5}
    Submission.objects.create(assignment=made[0], **corrected)
    Submission.objects.create(assignment=made[2], **corrected)
    assert workdays.update_workdays(project_id=project.pk, now=NOW) == 0
    assert [each["paid_ms"] for each in workdays.sum_time_by_day(project.pk)] == [10, 10, 15]
    assert workdays.update_workdays(project_id=project.pk, now=NOW, from_first=True) == 1
    assert [each["paid_ms"] for each in workdays.sum_time_by_day(project.pk)] == [15, 10, 15]
    WorkDay.objects.create(project=project, rater=rater, day=dt.date(2026, 11, 1), readings=1, active_ms=0, paid_ms=0)
    assert workdays.update_workdays(project_id=project.pk, now=NOW, from_first=True) == 1
    assert WorkDay.objects.count() == 3


def test_update_cost_does_not_grow_with_days() -> None:
    project = factories.make_project()
    rater = factories.make_rater(project)
    asked = []
    for n in range(3):
        day = NOW + dt.timedelta(days=n)
        factories.make_submitted(rater, factories.make_trace(project), ms=10, submitted_at=day)
        with CaptureQueriesContext(
            connection,
        ) as heard:
            workdays.update_workdays(project_id=project.pk, now=day)
        asked.append(len(heard))
    assert asked[1] == asked[2]
