"""Correction requests and reclaimed traces are shown until they are handled."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling import assignments, queue
from labeling.models import Project, Rater
from people import members
from people.models import Role
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient as Rating
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db


@pytest.mark.fault
def test_home_shows_a_correction_request_until_it_is_answered(client: Client) -> None:
    project, user = factories.make_project(), factories.make_user()
    members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    assignment = submitted_work.submit_trace(project.raters.get(), factories.make_trace(project), [1, 1, 1])
    assignments.request_correction(
        assignment_id=assignment.pk, note="Is 7 × 8 <b>56</b>?", by=factories.make_user(), now=factories.NOW
    )
    client.force_login(user)
    page = client.get(reverse("annotate:home")).content.decode()
    assert "Is 7 × 8 &lt;b&gt;56&lt;/b&gt;?" in page
    assert f"?assignment={assignment.pk}" in page
    answer = client.post(reverse("annotate:leave_as_is", args=[assignment.pk]))
    assert answer.headers["Location"] == reverse("annotate:home")
    assert "7 × 8" not in client.get(reverse("annotate:home")).content.decode()


@pytest.mark.fault
def test_correction_request_is_shown_beside_its_trace_until_answered(client: Client) -> None:
    project, user = factories.make_project(), factories.make_user()
    members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    rater = project.raters.get()
    assignment = submitted_work.submit_trace(rater, factories.make_trace(project), [1, 1, 1])
    assignments.request_correction(
        assignment_id=assignment.pk, note="Is 7 × 8 <b>56</b>?", by=factories.make_user(), now=factories.NOW
    )
    client.force_login(user)
    unread = reverse("annotate:unread", args=[project.slug])
    assert "Is 7 × 8" not in client.get(unread).content.decode()  # not beside other traces
    assert (
        "Is 7 × 8 &lt;b&gt;56" in client.get(reverse("annotate:submitted_one", args=[assignment.pk])).content.decode()
    )
    assignments.reopen_submission(assignment_id=assignment.pk, rater_id=rater.pk, now=factories.NOW, by=user)
    address = reverse("annotate:work", args=[project.slug])
    at_work = client.get(address, {"assignment": assignment.pk}).content.decode()
    for page in (at_work, client.get(unread).content.decode()):
        assert "Is 7 × 8 &lt;b&gt;56" in page
    assignments.decline_correction(assignment_id=assignment.pk, rater_id=rater.pk, by=user, now=factories.NOW)
    assert "Is 7 × 8" not in client.get(unread).content.decode()


def pages(client: Client, project: Project) -> list[str]:
    """Return the home page, the work page, and the notices it loads between traces."""
    addresses = [
        reverse("annotate:home"),
        *(reverse(f"annotate:{each}", args=[project.slug]) for each in ("work", "unread")),
    ]
    return [client.get(address).content.decode() for address in addresses]


@pytest.mark.parametrize(("pay", "is_paid"), [(None, "no"), (18, "yes")])
@pytest.mark.fault
def test_reclaimed_trace_is_announced_until_acknowledged(pay: int | None, is_paid: str, client: Client) -> None:
    project, user = factories.make_project(pay_per_hour=pay, currency="EUR"), factories.make_user()
    members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    problem = factories.make_problem(project, "What is 7 × 8 <b>?")
    taken = factories.make_assignment(Rater.objects.get(), factories.make_trace(project, problem=problem))
    Rating(taken).rate([1, -1])
    queue.reclaim_assignment(assignment_id=taken.pk, now=factories.NOW, by=factories.make_user())
    client.force_login(user)
    notice = f'data-reclaimed="{taken.pk}" data-reason="released" data-rated="2"'
    for page in pages(client, project):
        assert notice in page
        assert f'data-paid="{is_paid}"' in page
        assert "7 × 8 &lt;b&gt;?" in page
        assert f"?assignment={taken.pk}" in page
    at_it = client.get(reverse("annotate:work", args=[project.slug]), {"assignment": taken.pk}).content.decode()
    assert "data-reclaimed" not in at_it
    client.post(reverse("annotate:know_end", args=[taken.pk]))
    assert not any("data-reclaimed" in page for page in pages(client, project))


@pytest.mark.fault
def test_reclaimed_trace_that_was_submitted_is_not_announced(client: Client) -> None:
    project, user = factories.make_project(), factories.make_user()
    members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    taken = factories.make_assignment(Rater.objects.get(), factories.make_trace(project))
    rating = Rating(taken)
    queue.reclaim_assignment(assignment_id=taken.pk, now=factories.NOW, by=factories.make_user())
    rating.rate([1, 1, 1])
    assignments.submit(**rating.place, now=factories.NOW, by=user)
    client.force_login(user)
    assert not any("data-reclaimed" in page for page in pages(client, project))
