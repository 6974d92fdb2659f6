"""The description of the notices above a trace changes with the notices."""

import datetime as dt

import pytest
from django.utils import timezone

from annotate import work_page
from labeling import assignments, queue
from labeling.models import Assignment, Guideline
from people import member_messages
from people.models import MemberMessage, Membership
from tests import factories
from tests.annotate.views.test_work import AtWork, batch, rating

pytestmark = pytest.mark.django_db


@pytest.fixture
def me() -> AtWork:
    project = factories.make_project(overlap=1)
    lane = factories.make_lane(project)
    for _ in range(3):
        factories.make_entry(lane, factories.make_trace(project, ["One.", "Two."]))
    return AtWork(project)


def describe(me: AtWork) -> str:
    return work_page.describe_news(me.rater.pk)


def test_rater_without_notices_has_an_empty_description(me: AtWork) -> None:
    assert me.claim()["news"] == "" == describe(me)


def test_reclaimed_trace_is_news_until_it_is_acknowledged(me: AtWork) -> None:
    mine = me.claim()["assignment"]
    me.post(f"{mine}/record", batch(rating(1, 0, 1)))
    now = timezone.now()
    assert queue.reclaim_assignment(assignment_id=mine, now=now, by=factories.make_user())
    assert describe(me) == f"r{mine}"
    assert me.rater.user is not None
    queue.acknowledge_reclaim(assignment_id=mine, rater_id=me.rater.pk, now=now, by=me.rater.user)
    assert describe(me) == ""


def test_message_is_news_until_it_is_read(me: AtWork) -> None:
    membership = Membership.objects.get(user=me.rater.user)
    message = MemberMessage.objects.create(membership=membership, text="Hello.", written_at=timezone.now())
    assert describe(me) == f"m{message.pk}"
    assert me.rater.user is not None
    member_messages.mark_read(message=message, by=me.rater.user, now=timezone.now())
    assert describe(me) == ""


def test_reopened_request_is_news(me: AtWork) -> None:
    mine = me.claim()["assignment"]
    me.post(f"{mine}/submit", batch(rating(1, 0, 1), rating(2, 1, 1)))
    now = timezone.now()
    request = assignments.request_correction(assignment_id=mine, note="Look.", by=factories.make_user(), now=now)
    assert describe(me) == ""
    Assignment.objects.filter(pk=mine).update(reopened_at=timezone.now() - dt.timedelta(minutes=1))
    assert describe(me) == f"c{request.pk}"


def test_answer_to_edits_opens_a_trace_and_holds_the_next_one(me: AtWork) -> None:
    first = me.claim()["assignment"]
    status, answer = me.post(f"{first}/record", {**batch(rating(1, 0, 1)), "next": {"shown": [first]}})
    second = answer["next"]["assignment"]
    assert (status, answer["next"]["state"], answer["news"]) == (200, "held", "")
    wishes = {"opens": second, "next": {"shown": [first, second]}}
    status, answer = me.post(f"{first}/submit", {**batch(rating(2, 1, 1)), **wishes})
    assert (status, answer["state"], answer["opened"]) == (200, "submitted", 1)
    states = dict(Assignment.objects.values_list("pk", "state"))
    assert states == {first: "submitted", second: "opened", answer["next"]["assignment"]: "held"}


def test_refused_wish_does_not_refuse_the_message(me: AtWork) -> None:
    first = me.claim()["assignment"]
    me.project.open_limit = 1
    me.project.save()
    status, answer = me.post(f"{first}/record", {**batch(rating(1, 0, 1)), "next": {"shown": []}, "opens": 2**40})
    assert (status, answer["version"]) == (200, 1)
    assert answer["next"]["assignment"] == first  # not among those that the page shows: begun elsewhere
    status, answer = me.post(f"{first}/record", {**batch(rating(2, 1, 1)), "next": {"shown": [first]}, "opens": 2**40})
    assert (status, answer["version"], answer["next"], answer["opened"]) == (200, 2, None, None)


def test_wish_names_only_possible_ids(me: AtWork) -> None:
    first = me.claim()["assignment"]
    status, answer = me.post(f"{first}/record", {**batch(rating(1, 0, 1)), "next": {"shown": [2**63]}})
    assert (status, answer["code"]) == (422, "invalid")


@pytest.mark.parametrize("change", ["paused_at", "guideline"])
def test_trace_is_not_opened_for_a_rater_who_may_not(change: str, me: AtWork) -> None:
    held = queue.claim_trace(rater_id=me.rater.pk, now=timezone.now()).assignment_id
    if change == "guideline":
        me.project.guideline = Guideline.objects.create(
            project=me.project, version=1, body="x", published_at=timezone.now(), published_by=factories.make_user()
        )
        me.project.save()
    else:
        me.rater.paused_at = timezone.now()
        me.rater.paused_reason = "x"
        me.rater.save()
    assert queue.open_held(assignment_id=held, rater_id=me.rater.pk, now=timezone.now()) is None
    assert Assignment.objects.get(pk=held).state == "held"
