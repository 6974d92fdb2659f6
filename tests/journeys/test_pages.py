"""Every page, wide and on a phone, in both themes: no axe-core violations and no horizontal overflow."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts import tokens
from accounts.models import User
from annotate import history
from labeling import assignments, onboarding
from labeling.models import Assignment, StepReview
from people import invitations
from people.models import Role
from tests import factories
from tests.journeys.conftest import Visit, violations_in_both_themes
from tests.journeys.example_project import ExampleProject, make_example_project
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.quality import submitted_work as quality

pytestmark = pytest.mark.django_db(transaction=True)


def submitted(scene: ExampleProject) -> int:
    """Submit a long trace with math, code and a comment, rated up to its first error."""
    steps = ["So $x^2 = 4$.", "```\n" + "x" * 300 + "\n```", r"Then \(" + "x + " * 90 + r"1 = 2\).", *["More."] * 97]
    trace = factories.make_trace(scene.project, steps)
    assignment = quality.submit_trace(scene.project.raters.get(user=scene.annotator), trace, [1, 0, -1])
    StepReview.objects.filter(assignment=assignment, step__position=2).update(comment="y" * 200)
    assignments.request_correction(assignment_id=assignment.pk, note="Sure?", by=scene.lead, now=timezone.now())
    for n in range(history.PAGE_SIZE + 1):
        trace = factories.make_trace(scene.project, problem=assignment.trace.problem)
        factories.make_submitted(assignment.rater, trace, ms=60_000 * n, submitted_at=timezone.now())
    return assignment.pk


def test_times_use_the_browser_time_zone(visit: Visit) -> None:
    scene = make_example_project()
    page = visit(scene.annotator, "/", timezone_id="Asia/Tokyo")
    page.goto(reverse("annotate:home"))
    there = page.evaluate("new Intl.DateTimeFormat('en', { day: 'numeric', month: 'long' }).formatToParts()")
    told = {part["type"]: part["value"] for part in there}
    day = page.locator("section[aria-labelledby=day] .end")
    expect(day).to_contain_text(f"{told['day']} {told['month']}")
    assert [each["value"] for each in page.context.cookies() if each.get("name") == "zone"] == ["Asia/Tokyo"]


def in_the_middle_of_one(scene: ExampleProject) -> None:
    """Open a trace and rate a part of it."""
    rater = scene.project.raters.get(user=scene.annotator)
    begun = onboarding.claim_trace(rater_id=rater.pk, by=scene.annotator, now=timezone.now(), opened=True)
    WorkPageClient(Assignment.objects.get(pk=begun.assignment_id)).rate([1, 0], now=timezone.now())


def addresses(scene: ExampleProject, user: User | None) -> list[str]:
    now = timezone.now()
    _, invitation = invitations.create_invitation(project=scene.project, role=Role.ENGINEER, by=scene.lead, now=now)
    anybody = [
        reverse("annotate:join", args=[invitation]),
        reverse("login_link", args=[tokens.create_login_link(user=scene.annotator, by=None, now=now)]),
        reverse("new_password", args=[tokens.create_password_link(user=scene.annotator, by=None, now=now)]),
        reverse("login_link", args=["spent"]),
        reverse("account_reset_password"),
        reverse("account_signup"),
        reverse("account_inactive"),
        "/nothing-here/",
    ]
    if user is None:
        return [reverse("account_login"), *anybody]
    pages = [
        reverse("annotate:home"),
        reverse("annotate:keys"),
        reverse("account_change_password"),
        reverse("sign_ins"),
        reverse("annotate:your_data"),
        reverse("account_logout"),
    ]
    if user == scene.annotator:
        done = submitted(scene)
        in_the_middle_of_one(scene)
        latest, geometry = reverse("annotate:history"), ["geometry"]
        pages += [latest, f"{latest}?before={done + 9}", reverse("annotate:submitted_one", args=[done])]
        pages += [reverse("annotate:work", args=geometry), reverse("annotate:enter", args=geometry)]
        pages += [reverse("annotate:guideline", args=[scene.project.slug]), reverse("tokens")]
    if user == scene.lead:
        pages += [reverse("dashboard:members", args=[scene.project.slug]), reverse("dashboard:new_project")]
        pages += [reverse("dashboard:imports", args=[scene.project.slug])]
        pages += [reverse("dashboard:notices", args=[scene.project.slug]), reverse("dashboard:security_log")]
    return pages


def faults(page: Page, address: str) -> list[str]:
    page.goto(address)
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return [
        f"{address}: {each}" for each in [*violations_in_both_themes(page), *(["runs off the side"] if wide else [])]
    ]


@pytest.mark.parametrize("width", [1440, 390])
def test_pages_are_accessible(width: int, visit: Visit) -> None:
    scene = make_example_project()
    found = []
    for user in (None, scene.annotator, scene.lead):
        page = visit(user, width=width)
        for address in addresses(scene, user):
            found += faults(page, address)
    assert not found, "\n".join(found)
