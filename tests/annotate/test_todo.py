"""What there is to do, told truly and at a constant cost."""

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from annotate import todo
from labeling import queue
from labeling.models import Assignment, Gold, GoldAnswer, Project, Rater, Submission, Turn
from people import members, projects
from people.models import Membership, Role
from tests import factories

pytestmark = pytest.mark.django_db
SUBMITTED = {"state": "submitted", "submitted_at": factories.NOW, "finish_reason": "solution", "submitted_revision": 1}


def a_project_of(user: User, waiting: int = 0, role: Role = Role.ANNOTATOR, **fields: Any) -> Project:
    project = factories.make_project(**fields)
    members.join(project=project, user=user, role=role, now=factories.NOW)
    lane = factories.make_lane(project)
    for _ in range(waiting):
        factories.make_entry(lane, factories.make_trace(project))
    return project


def only(user: User) -> todo.Todo:
    (each,) = todo.of(user)
    return each


def test_of_counts_what_this_rater_has_not_had() -> None:
    user = factories.make_user()
    project = a_project_of(user, waiting=3)
    assert (only(user).waiting, only(user).says) == (3, "waiting")
    first = project.traces.order_by("pk").first()
    assert first
    factories.make_assignment(Rater.objects.get(), first, **SUBMITTED, holds_slot=True)
    assert only(user).waiting == 2


def test_of_leaves_out_what_is_given_out_and_lanes_that_are_closed() -> None:
    user = factories.make_user()
    project = a_project_of(user)
    factories.make_entry(factories.make_lane(project, arm="gold"), factories.make_trace(project), slots=0)
    closed = factories.make_lane(project, arm="policy", closed_at=factories.NOW)
    factories.make_entry(closed, factories.make_trace(project))
    assert (only(user).waiting, only(user).says) == (0, "nothing")


def test_of_stops_counting_where_nobody_plans_further() -> None:
    assert not todo.Todo(Membership(), None, waiting=todo.COUNTED).is_over_counted
    assert todo.Todo(Membership(), None, waiting=todo.COUNTED + 1).is_over_counted


@pytest.mark.parametrize(("role", "may"), [(Role.LEAD, True), (Role.REVIEWER, True), (Role.ENGINEER, False)])
def test_of_lets_those_begin_to_rate_who_may(role: Role, may: bool, client: Client) -> None:
    user = factories.make_user()
    project = a_project_of(user, waiting=1, role=role)
    assert (only(user).may_begin_rating, only(user).is_work) == (may, False)
    client.force_login(user)
    response = client.post(reverse("annotate:begin_rating", args=[project.slug]))
    assert response.status_code == (302 if may else 403)
    assert (only(user).is_work, only(user).waiting) == ((True, 1) if may else (False, 0))


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_of_says_where_no_work_goes_on(state: str) -> None:
    user = factories.make_user()
    a_project_of(user, waiting=1, state=state)
    assert only(user).says == state
    assert f"This project is {state}" in only(user).why


def test_of_says_why_nothing_is_left_in_the_words_of_the_work_page(now: dt.datetime, client: Client) -> None:
    user, other = factories.make_user(), factories.make_user()
    project = a_project_of(user)
    mine, theirs = Rater.objects.get(), factories.make_rater(project, other)
    assert said_by_both(client, user, mine, "Nothing is queued in this project.")
    factories.make_submitted(mine, factories.make_trace(project))
    assert said_by_both(client, user, mine, "Everything here is read as often as was asked for.")
    met = factories.make_submitted(mine, factories.make_trace(project))
    factories.make_entry(project.lanes.get(), met.trace)
    assert said_by_both(client, user, mine, "The rest waits for other raters.")
    ends = timezone.now() + dt.timedelta(minutes=20)
    factories.make_assignment(theirs, factories.make_trace(project), lease_ends_at=ends)
    assert said_by_both(client, user, mine, f"Other raters hold the rest until {timezone.localtime(ends):%H:%M}.")


def said_by_both(client: Client, user: User, rater: Rater, words: str) -> bool:
    """At home, and to whoever asks for a trace all the same."""
    assert words in only(user).why
    client.force_login(user)
    home = client.get(reverse("annotate:home")).content.decode()
    with pytest.raises(queue.NothingLeft, match=re.escape(words)):
        queue.claim(rater_id=rater.pk, now=timezone.now())
    return words in home and "Nothing left" in home


def test_of_does_not_count_hidden_gold_that_comes_by_chance_alone() -> None:
    user = factories.make_user()
    project = a_project_of(user)
    factories.make_entry(factories.make_lane(project, arm="gold"), factories.make_trace(project), slots=9)
    assert (only(user).says, only(user).why[:17]) == ("nothing", "Nothing is queued")


def test_of_says_that_a_rater_is_paused_or_did_not_pass() -> None:
    user = factories.make_user()
    a_project_of(user, waiting=1)
    Rater.objects.update(stage="failed")
    assert only(user).says == "failed"
    Rater.objects.update(stage="working", paused_at=factories.NOW, paused_reason="Call me.")
    assert (only(user).says, only(user).why[-8:]) == ("rater_paused", "Call me.")


def test_of_leaves_out_archived_projects_and_those_that_were_left(now: dt.datetime) -> None:
    user = factories.make_user()
    a_project_of(user, state="archived")
    members.leave(membership=members.find(project=a_project_of(user), user=user), now=now)
    assert todo.of(user) == []


def test_today_counts_what_was_submitted_since() -> None:
    user = factories.make_user()
    project = a_project_of(user)
    for hours in (1, 30):
        at = factories.NOW - dt.timedelta(hours=hours)
        done = submitted(project, at)
        for step in done.trace.steps.all():
            Turn.objects.create(assignment=done, step=step)
    told = todo.today(user, factories.NOW - dt.timedelta(hours=9))
    assert told == todo.Today(n_traces=1, n_steps=3, active=dt.timedelta(seconds=90), earned=[])


def submitted(project: Project, at: dt.datetime) -> Assignment:
    told = {**SUBMITTED, "submitted_at": at, "holds_slot": True}
    done = factories.make_assignment(Rater.objects.get(), factories.make_trace(project), **told)
    Submission.objects.create(
        project=project, assignment=done, submitted_at=at, finish_reason="solution", total_ms=90_000
    )
    return done


def test_opened_is_what_is_still_kept_for_the_person(now: dt.datetime) -> None:
    user = factories.make_user()
    project = a_project_of(user)
    kept = factories.make_assignment(Rater.objects.get(), factories.make_trace(project))
    assert todo.opened(user, now) == kept
    assert todo.opened(user, now + dt.timedelta(hours=1)) is None
    assert todo.opened(factories.make_user(), now) is None


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("waiting", [0, 1])
def test_home_costs_the_same_for_many(
    n: int, waiting: int, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    user = factories.make_user()
    for k in range(n):
        a_project_of(user, waiting=waiting)
        projects.create(name=f"Own {k}", slug=f"own-{k}", by=user, now=factories.NOW)
    client.force_login(user)
    with django_assert_num_queries(12 if waiting else 13):  # one more asks why
        response = client.get(reverse("annotate:home"))
    assert response.content.decode().count("<tr>") == 2 * n + 2


def test_today_earns_by_active_time_and_the_rate_of_each_project() -> None:
    user = factories.make_user()
    for rate, minutes in ((Decimal("19.20"), 30), (Decimal("24.00"), 10), (None, 60)):
        rater = factories.make_rater(factories.make_project(pay_per_hour=rate), user)
        factories.make_submitted(rater, factories.make_trace(rater.project), ms=minutes * 60_000)
    today = todo.today(user, factories.NOW)
    assert today.earned == [todo.Earned(Decimal("13.60"), "EUR")]
    assert today.active == dt.timedelta(minutes=100)


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
    assert todo.weeks(user, now) == [todo.Week("Told", dt.date(2026, 11, 9), 3, 5)]


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
