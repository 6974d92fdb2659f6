"""How it is going, told truly."""

import datetime as dt
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from annotate import history, work_summary
from charts import hour_columns
from charts.hour_columns import HourCount
from labeling.models import Assignment, Gold, GoldAnswer, Rater, StepReview
from tests import factories

pytestmark = pytest.mark.django_db


def rated(rater: Rater, at: dt.datetime, *, ms: int = 90_000) -> Assignment:
    done = factories.make_submitted(rater, factories.make_trace(rater.project), ms=ms, submitted_at=at)
    for step in done.trace.steps.all():
        StepReview.objects.create(assignment=done, step=step)
    return done


def test_today_counts_what_was_submitted_since_midnight_hour_by_hour(now: dt.datetime) -> None:
    rater = factories.make_rater(factories.make_project())
    for hours in (0, 0, 2, 9.5):
        rated(rater, now - dt.timedelta(hours=hours))
    told = work_summary.summarize_today(user_of(rater), now)
    assert (told.n_traces, told.n_steps, told.active, told.earned) == (3, 9, dt.timedelta(seconds=270), [])
    assert [(each.hour, each.n_steps) for each in told.hours if each.n_steps] == [(7, 3), (9, 6)]
    assert [each.hour for each in told.hours if each.is_now] == [9]


def test_today_begins_where_the_person_is(now: dt.datetime) -> None:
    rater = factories.make_rater(factories.make_project())
    rated(rater, now - dt.timedelta(hours=10))  # yesterday in London, and eight in the morning in Tokyo
    assert work_summary.summarize_today(user_of(rater), now).n_traces == 0
    with timezone.override("Asia/Tokyo"):
        told = work_summary.summarize_today(user_of(rater), now)
    assert [each.hour for each in told.hours if each.n_steps] == [8]


def test_work_is_looked_for_by_raters_that_are_known(now: dt.datetime) -> None:
    """Joined with the person, PostgreSQL goes through the work of everybody: seconds, where there are millions."""
    rater = factories.make_rater(factories.make_project())
    rated(rater, now)
    with CaptureQueriesContext(connection) as captured:
        for tell in (work_summary.summarize_today, work_summary.summarize_month, work_summary.summarize_weekly_gold):
            tell(user_of(rater), now)
        history.load_page(user_of(rater), now=now)
    by_person = [sql for each in captured if '"user_id" =' in (sql := each["sql"]) and "JOIN" in sql]
    assert [sql for sql in by_person if '"labeling_assignment"."id" IN' not in sql] == []
    assert sum(f'"rater_id" IN ({rater.pk})' in each["sql"] for each in captured) == 4


def test_today_shows_no_picture_of_nothing(now: dt.datetime) -> None:
    assert work_summary.summarize_today(factories.make_user(), now).hours == []


@pytest.mark.parametrize("hour", [0, 9, 23])
def test_today_shows_some_hours_around_a_single_one(hour: int) -> None:
    at = dt.datetime(2026, 11, 18, hour, 30, tzinfo=dt.UTC)
    rater = factories.make_rater(factories.make_project())
    rated(rater, at)
    hours = [each.hour for each in work_summary.summarize_today(user_of(rater), at).hours]
    assert len(hours) == 8
    assert hour in hours
    assert (hours[0] >= 0, hours[-1] <= 23) == (True, True)


def user_of(rater: Rater) -> User:
    assert rater.user is not None
    return rater.user


def test_today_earns_by_active_time_and_the_rate_of_each_project(now: dt.datetime) -> None:
    user = factories.make_user()
    for rate, minutes in ((Decimal("19.20"), 30), (Decimal("24.00"), 10), (None, 60)):
        rater = factories.make_rater(factories.make_project(pay_per_hour=rate), user)
        factories.make_submitted(rater, factories.make_trace(rater.project), ms=minutes * 60_000)
    today = work_summary.summarize_today(user, now)
    assert today.earned == [work_summary.Earnings(Decimal("13.60"), "EUR")]
    assert today.active == dt.timedelta(minutes=100)


def test_month_sums_since_its_first_day(now: dt.datetime) -> None:
    rater = factories.make_rater(factories.make_project(pay_per_hour=Decimal("12")))
    for back in (0, 10, 17, 18, 40):
        rated(rater, now - dt.timedelta(days=back), ms=600_000)
    told = work_summary.summarize_month(user_of(rater), now)
    assert (told.n_traces, told.active, told.earned[0].amount) == (3, dt.timedelta(minutes=30), Decimal("6.00"))


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=24))
def test_bars_stay_in_the_picture_and_higher_means_more(steps: list[int]) -> None:
    drawn = hour_columns.layout_bars([HourCount(hour, n, is_now=False) for hour, n in enumerate(steps)])
    assert all(bar.x >= 0 and bar.x + bar.width <= hour_columns.WIDTH and 16 <= bar.y <= 80 for bar in drawn)
    assert [bar.height for bar in sorted(drawn, key=lambda bar: bar.hour.n_steps)] == sorted(
        bar.height for bar in drawn
    )
    assert drawn[0].has_label


def test_bars_of_nothing() -> None:
    assert hour_columns.layout_bars([]) == []


def test_weeks_count_hidden_checks_of_whole_weeks_where_the_project_tells_them() -> None:
    user = factories.make_user()
    now = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)  # a Wednesday
    last_week, this_week = now - dt.timedelta(days=7), now - dt.timedelta(days=1)
    told = factories.make_rater(factories.make_project(name="Told", shows_weekly_gold=True), user)
    quiet = factories.make_rater(factories.make_project(name="Quiet"), user)
    answer(told, last_week, ["right", "right", "missed", "right", "blamed"])
    answer(told, this_week, ["right"] * 6)
    answer(told, last_week - dt.timedelta(days=7), ["right"] * 4)  # too few
    answer(quiet, last_week, ["right"] * 6)
    assert work_summary.summarize_weekly_gold(user, now) == [
        work_summary.WeeklyGoldChecks("Told", dt.date(2026, 11, 9), 3, 5)
    ]


def answer(rater: Rater, when: dt.datetime, verdicts: list[str]) -> None:
    for verdict in verdicts:
        trace = factories.make_trace(rater.project)
        gold = Gold.objects.create(trace=trace, use="hidden", accepted_first_errors=[1], made_at=when)
        assignment = factories.make_submitted(rater, trace, purpose="gold")
        GoldAnswer.objects.create(
            assignment=assignment,
            gold=gold,
            project=rater.project,
            rater=rater,
            use="hidden",
            verdict=verdict,
            answered_at=when,
        )
