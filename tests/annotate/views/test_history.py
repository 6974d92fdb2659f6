"""The history of submissions, and their correction."""

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from annotate import history
from labeling import assignments
from labeling.models import Assignment, Rater
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def rater() -> Rater:
    return factories.make_rater(factories.make_project())


def browser_of(rater: Rater) -> Client:
    assert rater.user is not None
    client = Client()
    client.force_login(rater.user)
    return client


def submit(rater: Rater, *ratings: int) -> Assignment:
    now = timezone.now()
    assignment = factories.make_assignment(
        rater, factories.make_trace(rater.project), lease_ends_at=now + dt.timedelta(hours=1)
    )
    writes = [
        assignments.IncomingEdit(sequence=n + 1, seen=0, kind="rate", step=n, option=0, rating=rating, active_ms=20_000)
        for n, rating in enumerate(ratings)
    ]
    assignments.submit(
        assignment_id=assignment.pk, rater_id=rater.pk, client="c", writes=writes, now=now, by=rater.user
    )
    assignment.refresh_from_db()
    return assignment


def test_page_shows_results_and_continues_by_key(
    rater: Rater, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    made = [submit(rater, 1, 1, -1), submit(rater, 1, 0, 1), submit(rater, -1)]
    assert rater.user is not None
    with django_assert_num_queries(6):
        first = history.load_page(rater.user, now=timezone.now(), size=2)
    assert [(each.is_negative, each.is_clean, len(each.ratings)) for each in first.rows] == [
        (True, False, 1),
        (False, True, 3),
    ]
    assert first.rows[1].active == dt.timedelta(minutes=1)
    last = history.load_page(rater.user, now=timezone.now(), size=2, before=first.older)
    assert [each.assignment for each in last.rows] == [made[0]]
    assert last.older is None


def test_page_scans_a_limited_number_of_assignments(rater: Rater, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skipped and reclaimed assignments can fill a whole page."""
    monkeypatch.setattr(history, "SCAN_LIMIT", 3)
    made, user = submit(rater, -1), rater.user
    assert user is not None
    for _ in range(3):
        gone = {"state": "released", "holds_slot": False, "lease_ends_at": None, "ended_at": factories.NOW}
        factories.make_assignment(rater, factories.make_trace(rater.project), **gone)
    first = history.load_page(user, now=timezone.now())
    assert (first.rows, first.older is None) == ([], False)
    last = history.load_page(user, now=timezone.now(), before=first.older)
    assert ([each.assignment for each in last.rows], last.older) == ([made], None)


def test_correction_opens_on_the_work_page_and_the_first_submission_counts_until_then(rater: Rater) -> None:
    assignment, browser = submit(rater, 1, 1, -1), browser_of(rater)
    shown = browser.get(reverse("annotate:submitted_one", args=[assignment.pk])).content.decode()
    assert 'data-result="found_error" data-steps="3"' in shown
    work = f"{reverse('annotate:work', args=[rater.project.slug])}?assignment={assignment.pk}"
    assert browser.get(work).headers["Location"] == reverse("annotate:submitted_one", args=[assignment.pk])
    assert browser.post(reverse("annotate:correct", args=[assignment.pk])).headers["Location"] == work
    trace = browser.get(work).context["first_trace"]
    assert (trace["revision"], trace["after"]) == (2, reverse("annotate:history"))
    assert [turn["judgments"][0]["rating"] for turn in trace["turns"]] == [1, 1, -1]
    assert 'data-result="found_error" data-steps="3"' in browser.get(reverse("annotate:history")).content.decode()


def test_old_and_training_submissions_cannot_be_edited_and_the_page_gives_the_reason(rater: Rater) -> None:
    old, browser = submit(rater, -1), browser_of(rater)
    Assignment.objects.filter(pk=old.pk).update(submitted_at=timezone.now() - dt.timedelta(days=8))
    trained = submit(rater, -1)
    Assignment.objects.filter(pk=trained.pk).update(purpose="training")
    reasons = set()
    for assignment in (old, trained):
        correct = reverse("annotate:correct", args=[assignment.pk])
        response = browser.post(correct, follow=True)
        reasons |= {str(message) for message in response.context["messages"] if message.level_tag == "warning"}
        assert f'action="{correct}"' not in response.content.decode()
    assert len(reasons) == 2


def test_submission_of_another_user_is_not_found(rater: Rater) -> None:
    assignment, other = submit(rater, -1), browser_of(factories.make_rater(rater.project))
    assert other.get(reverse("annotate:submitted_one", args=[assignment.pk])).status_code == 404
    assert other.post(reverse("annotate:correct", args=[assignment.pk])).status_code == 404
    assert other.get(reverse("annotate:history") + "?before=99999999999999999999").status_code == 200
