"""Steps of the onboarding in a browser: the project, and what is pressed on each page."""

from typing import Any

from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from labeling import gold_sets
from labeling.models import Project
from labeling.models.gold import GoldUse
from labeling.projects import guidelines, lifecycle
from labeling.quality.gold import make_gold
from people import invitations, members
from people.models import Role
from tests import factories

STEPS = ["The radius of the circle is $12$.", r"So \(12^2 = 124\) is its square.", "The area is $\\boxed{124\\pi}$."]


class OnboardingJourney:
    """A project with all onboarding steps, a lead, and an invitation."""

    def __init__(self, *, training: int = 1, screening: int = 1, **settings: Any) -> None:
        now = timezone.now()
        self.lead = factories.make_user("marchetti", name="Elena Marchetti", is_staff=True)
        self.project: Project = members.create_owned_project(
            name="Circles", slug="circles", by=self.lead, now=now, gold_share=0, overlap=1, **settings
        )
        lifecycle.publish_guideline(
            project=self.project, body=guidelines.load_guideline_template("math"), by=self.lead, now=now
        )
        lifecycle.publish_consent_text(project=self.project, body="# Taking part\n\nYes?", by=self.lead, now=now)
        for use, number in ((GoldUse.TRAINING, training), (GoldUse.SCREENING, screening)):
            self.put_up(use, number)
        lane = factories.make_lane(self.project)
        for number in range(3):
            factories.make_entry(
                lane, factories.make_trace(self.project, [f"Work {number}.", "And so on."]), key=-number
            )

    def put_up(self, use: GoldUse, number: int) -> None:
        for n in range(number):
            trace = factories.make_trace(self.project, [f"{use.capitalize()} {n + 1}: {STEPS[0]}", *STEPS[1:]])
            own = {step.position: step.options.get(position=0).pk for step in trace.steps.all()}
            make_gold(
                trace=trace,
                use=use,
                accepted_first_errors=[1],
                ratings={own[0]: 1, own[1]: -1},
                explanations={own[1]: "$12^2$ is $144$. One slip makes the whole step negative."},
                by=self.lead,
                now=timezone.now(),
            )
        if number:
            gold_sets.serve_gold_set(project=self.project, use=use, now=timezone.now())

    def invite(self, uses: int = 1) -> str:
        _, token = invitations.create_invitation(
            project=self.project, role=Role.ANNOTATOR, by=self.lead, now=timezone.now(), uses_allowed=uses
        )
        return reverse("annotate:join", args=[token])

    def annotator(self) -> User:
        user = factories.make_user("haddad", name="Amal Haddad")
        members.add_member(project=self.project, user=user, role=Role.ANNOTATOR, now=timezone.now())
        return user


PRIMARY = "main .btn--go"  # the main button or link of a page
REVIEW_CONSENT = "#main a[href='/enter/circles/']"  # on the home page


def focus_by_tab(page: Page, selector: str) -> None:
    """Wait for a control, then press Tab until it has the focus."""
    expect(page.locator(selector).first).to_be_visible()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached by Tab")


def press_control(page: Page, selector: str) -> None:
    focus_by_tab(page, selector)
    page.keyboard.press("Enter")


def rate_trace(page: Page, text: str, keys: str) -> None:
    """Wait until this trace is ready, then rate and submit it by keyboard."""
    expect(page.locator("#step-0")).to_contain_text(text)
    expect(page.locator(".step.is-now")).to_be_visible()
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator("#submit")).to_have_attribute("aria-disabled", "false")
    page.keyboard.press("Enter")


def wait_for_gate(page: Page, gate: str) -> None:
    expect(page.locator(f"main[data-gate={gate}]")).to_be_visible()


def agree_and_read(page: Page) -> None:
    """Accept the consent form and confirm the guideline, by keyboard."""
    wait_for_gate(page, "consent")
    focus_by_tab(page, "[name=agrees]")
    page.keyboard.press("Space")
    press_control(page, PRIMARY)
    wait_for_gate(page, "guideline")
    press_control(page, PRIMARY)
