"""Lifecycle changes of a project, and their effect on a rater with an open trace."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from labeling import overlap_change, queue
from labeling.models import Assignment, Judgment, Project, Rater, Submission
from labeling.models.project import ProjectState
from labeling.projects import lifecycle
from people import members
from people.models import Role
from tests import factories
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, press

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def day() -> RaterDay:
    return RaterDay(["One.", "Two.", "Three."], ["Four.", "Five.", "Six."])


@pytest.fixture
def owner(day: RaterDay) -> User:
    user = factories.make_user()
    members.add_member(project=day.project, user=user, role=Role.OWNER, now=timezone.now())
    return user


def begin_trace(day: RaterDay, visit: Visit) -> Page:
    page = day.begin(visit(day.user))
    press(page, "3")
    eventually(page, lambda: Judgment.objects.exists())
    return page


def press_form_button(page: Page, action: str) -> None:
    page.locator(f"form[action='{action}'] button").click()


def expect_reason(page: Page, day: RaterDay) -> None:
    """Wait until the page shows why the rater gets no trace."""
    rater = Rater.objects.get(project=day.project, user=day.user)
    reason = queue.ineligibility_reason(rater, Project.objects.get(pk=day.project.pk))
    assert reason
    expect(page.locator("[data-slot=reason]")).to_have_text(reason)


def finish(page: Page, n: int) -> None:
    press(page, "33")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == n)


def test_reclaimed_trace_shows_a_notice_and_can_be_finished(day: RaterDay, owner: User, visit: Visit) -> None:
    page, lead = begin_trace(day, visit), visit(owner)
    opened = Assignment.objects.get(state="opened")
    lead.goto(f"/projects/{day.project.slug}/traces/{opened.trace_id}/")
    expect(lead.locator(f"[data-assignment='{opened.pk}'] [data-rated='1']")).to_be_visible()
    press_form_button(lead, reverse("dashboard:reclaim_from_annotator", args=[day.project.slug, opened.pk]))
    expect(lead.locator("[data-message=success]")).to_be_visible()
    press(page, "3")
    expect(page.locator("[data-notice=reclaimed]")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-lease-ends", "")
    press(page, "3")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.filter(assignment=opened).exists())
    opened.refresh_from_db()
    assert (opened.state, opened.population, opened.submitted_revision) == ("submitted", "scheduled", 1)
    expect(page.locator("#step-0")).to_contain_text("Four.")
    expect(page.locator("[data-notice=reclaimed]")).to_be_hidden()


@pytest.mark.parametrize(("verb", "state"), [("pause", "paused"), ("close", "closed")])
def test_open_trace_of_a_stopped_project_can_be_finished(
    verb: str, state: str, day: RaterDay, owner: User, visit: Visit
) -> None:
    page, lead = begin_trace(day, visit), visit(owner)
    lead.goto(f"/projects/{day.project.slug}/settings/lifecycle/")
    expect(lead.locator("[data-people='1']")).to_be_visible()
    assert accessibility_violations(lead) == []
    press_form_button(lead, reverse(f"dashboard:{verb}_project", args=[day.project.slug]))
    expect(lead.locator(f"[data-project-state={state}]")).to_be_visible()
    assert not Assignment.objects.filter(state="held").exists()
    page.reload()
    expect(page.locator("#step-0")).to_contain_text("One.")  # still assigned, with its ratings
    finish(page, 1)
    expect_reason(page, day)
    press_form_button(lead, reverse("dashboard:resume_project", args=[day.project.slug]))
    expect(lead.locator("[data-project-state=open]")).to_be_visible()
    page.locator(".nothing button").click()
    expect(page.locator("#step-0")).to_contain_text("Four.")


def test_archived_project_accepts_late_submissions_and_can_be_restored(
    day: RaterDay, owner: User, visit: Visit
) -> None:
    page = begin_trace(day, visit)
    project = Project.objects.get(pk=day.project.pk)
    for to in (ProjectState.CLOSED, ProjectState.ARCHIVED):
        lifecycle.change_project_state(project=project, to=to, by=owner, now=timezone.now())
    finish(page, 1)
    expect_reason(page, day)
    lead = visit(owner, "/")
    link = lead.get_by_role("link", name=day.project.name)
    expect(link).to_be_hidden()
    lead.locator("main details.fold summary").click()
    link.click()
    lead.goto(f"/projects/{day.project.slug}/settings/lifecycle/")
    press_form_button(lead, reverse("dashboard:close_project", args=[day.project.slug]))
    expect(lead.locator("[data-project-state=closed]")).to_be_visible()


def test_lower_overlap_keeps_open_assignments(day: RaterDay, visit: Visit) -> None:
    page = begin_trace(day, visit)
    project = Project.objects.get(pk=day.project.pk)
    overlap_change.change_overlap(
        project=project, overlap=1, overlap_limit=5, lease_seconds=600, by=None, now=timezone.now()
    )
    finish(page, 1)
    expect(page.locator("#step-0")).to_contain_text("Four.")


def test_reclaim_notice_is_shown_after_a_reload_until_the_trace_is_submitted(
    day: RaterDay, owner: User, visit: Visit
) -> None:
    page = begin_trace(day, visit)
    opened = Assignment.objects.get(state="opened")
    queue.reclaim_assignment(assignment_id=opened.pk, now=timezone.now(), by=owner)
    page.reload()
    page.locator(f"#unread [data-notice='{opened.pk}'] summary").click()
    expect(page.locator(f"#unread [data-reclaimed='{opened.pk}'][data-rated='1']")).to_be_visible()
    assert not accessibility_violations(page)
    page.goto("/")
    notice = page.locator(f"[data-reclaimed='{opened.pk}'][data-reason=released]")
    expect(notice).to_be_visible()
    assert not accessibility_violations(page)
    notice.get_by_role("link").click()
    expect(page.locator("[data-notice=reclaimed]")).to_be_visible()
    expect(page.locator("#step-0 input[value='1']")).to_be_checked()
    finish(page, 1)
    opened.refresh_from_db()
    assert (opened.state, opened.submitted_revision) == ("submitted", 1)
    page.goto("/")
    expect(page.locator("#latest")).to_be_visible()
    expect(page.locator("[data-reclaimed]")).to_have_count(0)
