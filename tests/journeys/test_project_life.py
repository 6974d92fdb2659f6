"""Project actions of a lead, and their effect on an annotator with an open trace."""

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from labeling import overlap_change, queue
from labeling.models import Assignment, Judgment, Project, Submission
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


def in_the_middle(day: RaterDay, visit: Visit) -> Page:
    page = day.begin(visit(day.user))
    press(page, "3")
    eventually(page, lambda: Judgment.objects.exists())
    return page


def finish(page: Page, n: int) -> None:
    press(page, "33")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == n)


def test_reclaimed_trace_can_be_finished_and_counts(day: RaterDay, owner: User, visit: Visit) -> None:
    page, lead = in_the_middle(day, visit), visit(owner)
    opened = Assignment.objects.get(state="opened")
    lead.goto(f"/projects/{day.project.slug}/traces/{opened.trace_id}/")
    labels = lead.locator(f'[data-assignment="{opened.pk}"]')
    expect(labels).to_contain_text("1 step")
    labels.get_by_role("button").click()
    expect(lead.get_by_role("status")).to_be_visible()
    press(page, "3")
    expect(page.locator("[data-notice=reclaimed]")).to_be_visible()
    expect(page.locator("#lease")).to_have_text("")
    press(page, "3")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.filter(assignment=opened).exists())
    opened.refresh_from_db()
    assert (opened.state, opened.population, opened.submitted_revision) == ("submitted", "scheduled", 1)
    expect(page.locator("#step-0")).to_contain_text("Four.")
    expect(page.locator("[data-notice=reclaimed]")).to_be_hidden()


@pytest.mark.parametrize("verb", ["pause", "close"])
def test_open_trace_can_be_finished_after_pausing_or_closing(
    verb: str, day: RaterDay, owner: User, visit: Visit
) -> None:
    page, lead = in_the_middle(day, visit), visit(owner)
    lead.goto(f"/projects/{day.project.slug}/settings/lifecycle/")
    expect(lead.locator('[data-people="1"]')).to_be_visible()
    assert accessibility_violations(lead) == []
    lead.get_by_role("button", name=f"{verb.capitalize()} project").click()
    state = "paused" if verb == "pause" else "closed"
    expect(lead.locator(f'[data-project-state="{state}"]')).to_be_visible()
    assert not Assignment.objects.filter(state="held").exists()
    page.reload()
    expect(page.locator("#step-0")).to_contain_text("One.")  # still open, with its ratings
    finish(page, 1)
    expect(page.get_by_text(f"This project is {state}.")).to_be_visible()
    lead.get_by_role("button", name="Resume project").click()
    page.get_by_role("button", name="Check again").click()
    expect(page.locator("#step-0")).to_contain_text("Four.")


def test_archived_project_accepts_late_submissions_and_can_be_restored(
    day: RaterDay, owner: User, visit: Visit
) -> None:
    page = in_the_middle(day, visit)
    for verb in (lifecycle.close_project, lifecycle.archive_project):
        verb(project=Project.objects.get(pk=day.project.pk), by=owner, now=timezone.now())
    finish(page, 1)
    expect(page.get_by_text("This project is archived.")).to_be_visible()
    lead = visit(owner)
    expect(lead.get_by_role("link", name=day.project.name)).to_be_hidden()
    lead.get_by_text("Archived").click()
    lead.get_by_role("link", name=day.project.name).click()
    lead.goto(f"/projects/{day.project.slug}/settings/lifecycle/")
    lead.get_by_role("button", name="Unarchive project").click()
    expect(lead.locator('[data-project-state="closed"]')).to_be_visible()


def test_lower_overlap_keeps_open_traces(day: RaterDay, visit: Visit) -> None:
    page = in_the_middle(day, visit)
    project = Project.objects.get(pk=day.project.pk)
    options = {"overlap": 1, "overlap_limit": 5, "lease_seconds": 600}
    overlap_change.change_overlap(project=project, by=None, now=timezone.now(), **options)
    finish(page, 1)
    expect(page.locator("#step-0")).to_contain_text("Four.")


def test_reclaimed_notice_survives_a_reload(day: RaterDay, owner: User, visit: Visit) -> None:
    page = in_the_middle(day, visit)
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
