"""Summaries of a user's work."""

import datetime as dt
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from annotate import history, work_summary
from labeling.models import Assignment, Gold, GoldAnswer, Rater, StepReview
from tests import factories

pytestmark = pytest.mark.django_db


def rated(rater: Rater, at: dt.datetime, *, ms: int = 90_000) -> Assignment:
    done = factories.make_submitted(rater, factories.make_trace(rater.project), ms=ms, submitted_at=at)
    for step in done.trace.steps.all():
        StepReview.objects.create(assignment=done, step=step)
    return done


def test_today_counts_submissions_since_midnight_by_hour(now: dt.datetime) -> None:
    rater = factories.make_rater(factories.make_project())
    for hours in (0, 0, 2, 9.5):
        rated(rater, now - dt.timedelta(hours=hours))
    summary = work_summary.summarize_today(user_of(rater), now)
    assert (summary.n_traces, summary.n_steps, summary.active, summary.earned) == (3, 9, dt.timedelta(seconds=270), [])
    assert {hour: n for hour, n in summary.steps_by_hour.items() if n} == {7: 3, 9: 6}
    assert summary.hour == 9


def test_today_starts_at_midnight_in_the_users_time_zone(now: dt.datetime) -> None:
    rater = factories.make_rater(factories.make_project())
    rated(rater, now - dt.timedelta(hours=10))  # the previous day in London, 8:00 in Tokyo
    assert work_summary.summarize_today(user_of(rater), now).n_traces == 0
    with timezone.override("Asia/Tokyo"):
        summary = work_summary.summarize_today(user_of(rater), now)
    assert [hour for hour, n in summary.steps_by_hour.items() if n] == [8]


def test_submissions_are_queried_by_rater_ids(now: dt.datetime) -> None:
    """Joined with the user, PostgreSQL would scan the submissions of all raters."""
    rater = factories.make_rater(factories.make_project())
    rated(rater, now)
    with CaptureQueriesContext(connection) as captured:
        for tell in (work_summary.summarize_today, work_summary.summarize_month, work_summary.summarize_weekly_gold):
            tell(user_of(rater), now)
        history.load_page(user_of(rater), now=now)
    by_person = [sql for each in captured if '"user_id" =' in (sql := each["sql"]) and "JOIN" in sql]
    assert [sql for sql in by_person if '"labeling_assignment"."id" IN' not in sql] == []
    assert sum(f'"rater_id" IN ({rater.pk})' in each["sql"] for each in captured) == 4


def test_today_without_work_has_no_chart(now: dt.datetime) -> None:
    assert work_summary.summarize_today(factories.make_user(), now).chart is None


@pytest.mark.parametrize("hour", [0, 9, 23])
def test_chart_of_one_hour_shows_the_hours_around_it(hour: int) -> None:
    at = dt.datetime(2026, 11, 18, hour, 30, tzinfo=dt.UTC)
    rater = factories.make_rater(factories.make_project())
    rated(rater, at)
    today = work_summary.summarize_today(user_of(rater), at)
    hours = list(today.steps_by_hour)
    assert f'aria-label="{hour}:00, 3 steps."' in str(today.chart)
    assert len(hours) == 8
    assert hour in hours
    assert (hours[0] >= 0, hours[-1] <= 23) == (True, True)


def user_of(rater: Rater) -> User:
    assert rater.user is not None
    return rater.user


def test_earnings_follow_active_time_and_project_rates(now: dt.datetime) -> None:
    user = factories.make_user()
    for rate, minutes in ((Decimal("19.20"), 30), (Decimal("24.00"), 10), (None, 60)):
        rater = factories.make_rater(factories.make_project(pay_per_hour=rate), user)
        factories.make_submitted(rater, factories.make_trace(rater.project), ms=minutes * 60_000)
    today = work_summary.summarize_today(user, now)
    assert today.earned == [work_summary.Earnings(Decimal("13.60"), "EUR")]
    assert today.active == dt.timedelta(minutes=100)


def test_month_starts_on_its_first_day(now: dt.datetime) -> None:
    rater = factories.make_rater(factories.make_project(pay_per_hour=Decimal("12")))
    for back in (0, 10, 17, 18, 40):
        rated(rater, now - dt.timedelta(days=back), ms=600_000)
    summary = work_summary.summarize_month(user_of(rater), now)
    assert (summary.n_traces, summary.active, summary.earned[0].amount) == (
        3,
        dt.timedelta(minutes=30),
        Decimal("6.00"),
    )


def test_weekly_gold_covers_whole_weeks_of_projects_that_show_it() -> None:
    user = factories.make_user()
    now = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)  # a Wednesday
    last_week, this_week = now - dt.timedelta(days=7), now - dt.timedelta(days=1)
    summary = factories.make_rater(factories.make_project(name="Told", shows_weekly_gold=True), user)
    quiet = factories.make_rater(factories.make_project(name="Quiet"), user)
    answer(summary, last_week, ["right", "right", "missed", "right", "blamed"])
    answer(summary, this_week, ["right"] * 6)
    answer(summary, last_week - dt.timedelta(days=7), ["right"] * 4)  # too few
    answer(quiet, last_week, ["right"] * 6)
    assert work_summary.summarize_weekly_gold(user, now) == [
        work_summary.WeeklyGoldChecks("Told", dt.date(2026, 11, 9), 3, 5)
    ]


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/St_Johns", "UTC"])
def test_weeks_end_at_the_same_time_for_every_time_zone(zone: str) -> None:
    """A rater who moves the end of a week between two answers would find out which trace was gold."""
    user, now = factories.make_user(), dt.datetime(2026, 11, 16, 2, tzinfo=dt.UTC)  # two hours into Monday
    rater = factories.make_rater(factories.make_project(name="Told", shows_weekly_gold=True), user)
    answer(rater, now - dt.timedelta(hours=1), ["right"] * 4)
    answer(rater, now - dt.timedelta(hours=3), ["right"] * 6)
    answer(rater, now - dt.timedelta(days=3), ["missed"])
    with timezone.override(zone):
        weeks = work_summary.summarize_weekly_gold(user, now)
    assert weeks == [work_summary.WeeklyGoldChecks("Told", dt.date(2026, 11, 9), 6, 7)]


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
