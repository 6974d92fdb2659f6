"""From an invitation into the work: agree, read, train, be screened, rate."""

from typing import Any, Literal

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from labeling import admission, projects, quality
from labeling.models import Assignment, Consent, GuidelineReading, Project, Rater, ScreeningResult, Submission
from labeling.models.quality import GoldUse
from people import invitations, members
from people import projects as projects_of_people
from people.models import Role
from tests import factories
from tests.journeys.conftest import Visit, violations
from tests.labeling.admission import road

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = ["The radius of the circle is $12$.", r"So \(12^2 = 124\) is its square.", "The area is $\\boxed{124\\pi}$."]


CONTROLS: tuple[Literal["link", "button", "checkbox", "textbox"], ...] = ("link", "button", "checkbox", "textbox")
FOCUSED = "document.activeElement.innerText || document.activeElement.labels?.[0]?.innerText || ''"


class Road:
    """A project with the whole way in, a lead, and an invitation into it."""

    def __init__(self, *, training: int = 1, screening: int = 1, **settings: Any) -> None:
        now = timezone.now()
        self.lead = factories.make_user("marchetti", name="Elena Marchetti", is_staff=True)
        self.project: Project = projects_of_people.create(
            name="Circles", slug="circles", by=self.lead, now=now, gold_share=0, overlap=1, **settings
        )
        projects.publish_template(project=self.project, template="maths", by=self.lead, now=now)
        projects.publish_consent_text(project=self.project, body="# Taking part\n\nYes?", by=self.lead, now=now)
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
            quality.make_gold(
                trace=trace,
                use=use,
                accepted_first_errors=[1],
                ratings={own[0]: 1, own[1]: -1},
                explanations={own[1]: "$12^2$ is $144$. One slip makes the whole step negative."},
                by=self.lead,
                now=timezone.now(),
            )
        if number:
            admission.put_up(project=self.project, use=use, now=timezone.now())

    def invite(self, uses: int = 1) -> str:
        _, token = invitations.invite(
            project=self.project, role=Role.ANNOTATOR, by=self.lead, now=timezone.now(), uses_allowed=uses
        )
        return reverse("annotate:join", args=[token])

    def annotator(self) -> User:
        user = factories.make_user("haddad", name="Amal Haddad")
        members.join(project=self.project, user=user, role=Role.ANNOTATOR, now=timezone.now())
        return user


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the control of this name has the focus, once the page that has it is there."""
    roles = [page.get_by_role(role, name=name) for role in CONTROLS]
    expect(roles[0].or_(roles[1]).or_(roles[2]).or_(roles[3]).first).to_be_visible()
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "document.activeElement.innerText || document.activeElement.labels?.[0]?.innerText || ''"
        )
        if name in focused:
            return
    raise AssertionError(f"{name!r} cannot be reached by Tab")


def press(page: Page, name: str) -> None:
    tab_to(page, name)
    page.keyboard.press("Enter")


def rate(page: Page, text: str, keys: str) -> None:
    """Wait until this trace is lit, then rate and submit it, all by keyboard."""
    expect(page.locator("#step-0")).to_contain_text(text)
    expect(page.locator(".step.is-now")).to_be_visible()
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator("#submit")).to_have_attribute("aria-disabled", "false")
    page.keyboard.press("Enter")


def heading(page: Page, name: str) -> None:
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()


def read_on(page: Page) -> None:
    """Agree and read, by keyboard."""
    heading(page, "What you agree to")
    tab_to(page, "I have read this and agree to it")
    page.keyboard.press("Space")
    press(page, "Go on")
    heading(page, "Guideline")
    press(page, "I have read it")


def test_invitation_to_first_submit_by_keyboard_alone(visit: Visit) -> None:
    way = Road()
    page = visit()
    page.goto(way.invite())
    heading(page, "Circles")
    tab_to(page, "User name")
    page.keyboard.type("ines")
    tab_to(page, "Password")
    page.keyboard.type("seven green ladders")
    page.keyboard.press("Enter")
    read_on(page)
    heading(page, "Training")
    press(page, "Begin the training")
    rate(page, "Training 1", "31")
    expect(page.get_by_text("You found the first error.")).to_be_visible()
    expect(page.get_by_role("button", name="End of the training: go on")).to_be_focused()
    page.keyboard.press("Enter")
    heading(page, "Screening")
    press(page, "Begin the screening")
    rate(page, "Screening 1", "31")
    heading(page, "Screening passed")
    press(page, "Start work")
    rate(page, "Work 0.", "33")
    expect(page.locator("#step-0")).to_contain_text("Work 1.")
    expect(page.locator("#save[data-state=saved]")).to_be_visible()
    ines = Rater.objects.get(user__username="ines")
    assert list(Submission.objects.order_by("pk").values_list("assignment__purpose", flat=True)) == [
        "training",
        "screening",
        "work",
    ]
    assert (Consent.objects.get().rater, GuidelineReading.objects.get().rater) == (ines, ines)


def test_answer_to_a_training_trace_says_what_the_guideline_says_and_survives_a_reload(visit: Visit) -> None:
    way = Road(training=2)
    page = visit(way.annotator())
    page.get_by_role("link", name="Agree first Circles").click()
    read_on(page)
    page.get_by_role("link", name="Begin the training").click()
    rate(page, "Training 1", "331")  # the error is in the second step
    expect(page.get_by_text("You passed over the error in step 2.")).to_be_visible()
    expect(page.locator("#step-2 .lesson__head")).to_contain_text("The guideline says negative")
    expect(page.locator("#step-2 .lesson__said")).to_contain_text("Positive")
    expect(page.locator("#step-2 .katex").first).to_be_visible()
    # Whoever goes away is brought back to the answer, and gets no trace before.
    page.goto("/")
    page.get_by_role("link", name="Look at the answer first Circles").click()
    expect(page.get_by_text("You passed over the error in step 2.")).to_be_visible()
    page.goto(reverse("annotate:work", args=["circles"]))
    expect(page.get_by_role("button", name="Next training trace")).to_be_focused()
    page.keyboard.press("Enter")
    rate(page, "Training 2", "31")
    expect(page.get_by_text("You found the first error.")).to_be_visible()


def test_failing_is_told_plainly_and_what_comes_next(visit: Visit) -> None:
    way = Road(training=0, screening=1, screening_attempts=2)
    page = visit(way.annotator())
    page.get_by_role("link", name="Agree first Circles").click()
    read_on(page)
    press(page, "Begin the screening")
    rate(page, "Screening 1", "333")
    heading(page, "Not passed this time")
    expect(page.get_by_text("0 of 1")).to_be_visible()
    press(page, "Begin attempt 2")
    heading(page, "Screening")
    press(page, "Begin the screening")
    rate(page, "Screening 1", "1")
    heading(page, "The screening was not passed")
    expect(page.get_by_text("A lead can give you another attempt: ask Elena Marchetti.")).to_be_visible()
    assert ScreeningResult.objects.filter(has_passed=False).count() == 2
    page.goto(reverse("annotate:work", args=["circles"]))
    heading(page, "The screening was not passed")
    page.goto("/")
    expect(page.get_by_role("link", name="Not passed Circles")).to_be_visible()


def test_guideline_that_changes_in_the_middle_is_read_before_the_next_trace(visit: Visit) -> None:
    way = Road(training=0, screening=0)
    page = visit(way.annotator())
    page.get_by_role("link", name="Agree first Circles").click()
    read_on(page)
    press(page, "Start work")
    expect(page.locator("#step-0")).to_contain_text("Work 0.")
    page.keyboard.press("3")
    expect(page.locator("#save[data-state=saved]")).to_be_visible()
    projects.publish_guideline(
        project=way.project, body="# New\n\nUnits count.", changes="Units count.", by=way.lead, now=timezone.now()
    )
    # What is in hand is finished.
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    heading(page, "Guideline")
    expect(page.get_by_text("The guideline has changed since you read version 1.")).to_be_visible()
    expect(page.get_by_text("What is new: Units count.")).to_be_visible()
    press(page, "I have read it")
    heading(page, "You can begin")
    press(page, "Start work")
    expect(page.locator("#step-0")).to_contain_text("Work 1.")
    versions = Assignment.objects.filter(opened_at__isnull=False).order_by("opened_at")
    assert list(versions.values_list("guideline__version", "state")) == [(1, "submitted"), (2, "opened")]


def test_worker_of_a_crowd_platform_comes_in_comes_back_and_takes_the_code(visit: Visit) -> None:
    way = Road(training=0, screening=0)
    Project.objects.filter(pk=way.project.pk).update(
        takes_worker_ids=True, completion_code="C1X9", completion_url="https://platform.example/done?cc=C1X9"
    )
    invitation = way.invite(uses=5)
    address = f"{invitation}?PROLIFIC_PID=5f3a91d2&STUDY_ID=study&SESSION_ID=one"
    page = visit()
    page.goto(address)
    expect(page.get_by_text("5f3a91d2")).to_be_visible()
    expect(page.get_by_role("button", name="Begin")).to_be_focused()
    page.keyboard.press("Enter")
    read_on(page)
    press(page, "Start work")
    for n in range(2):
        rate(page, f"Work {n}.", "33")
    expect(page.locator("#step-0")).to_contain_text("Work 2.")
    again = visit()
    again.goto(address)
    again.keyboard.press("Enter")
    heading(again, "You can begin")
    press(again, "Start work")
    rate(again, "Work 2.", "33")
    again.get_by_role("link", name="Finish and get your completion code").click()
    heading(again, "You have done 3 traces")
    expect(again.get_by_text("C1X9", exact=True)).to_be_visible()
    expect(again.get_by_role("link", name="Finish there")).to_have_attribute(
        "href", "https://platform.example/done?cc=C1X9"
    )
    stranger = visit()
    stranger.goto(f"{invitation}?PROLIFIC_PID=%7B%7B%25PROLIFIC_PID%25%7D%7D")
    heading(stranger, "This link does not let you in")


def test_way_in_works_without_javascript(visit: Visit) -> None:
    way = Road()
    user = way.annotator()
    page = visit(user, java_script_enabled=False)
    page.get_by_role("link", name="Agree first Circles").click()
    page.get_by_label("I have read this and agree to it").check()
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="I have read it").click()
    page.get_by_role("link", name="Begin the training").click()
    assert "Rating needs JavaScript" in page.content()
    finish_training(user)
    page.goto("/")
    page.get_by_role("link", name="Look at the answer first Circles").click()
    expect(page.get_by_text(r"\boxed{124\pi}")).to_be_visible()
    page.get_by_role("button", name="End of the training: go on").click()
    heading(page, "Screening")


def finish_training(user: User) -> None:
    rater = Rater.objects.get(user=user)
    road.rate(rater, timezone.now(), first_error=2)


def test_leaving_instead_of_agreeing(visit: Visit) -> None:
    way = Road()
    user = way.annotator()
    page = visit(user)
    page.get_by_role("link", name="Agree first Circles").click()
    page.get_by_role("button", name="Leave the project").click()
    expect(page.get_by_text("You belong to no project yet")).to_be_visible()
    assert Rater.objects.get(user=user).removed_at is not None


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)])
def test_stations_have_no_barrier(width: int, dark: bool, visit: Visit) -> None:
    way = Road(screening_attempts=2)
    user = way.annotator()
    rater = Rater.objects.select_related("project__guideline", "project__consent_text").get(user=user)
    text, guideline = rater.project.consent_text, rater.project.guideline
    assert text is not None
    assert guideline is not None
    page = visit(user, width=width, dark=dark)
    found: list[str] = []

    def look(address: str) -> None:
        page.goto(address)
        found.extend(f"{address}: {each}" for each in violations(page))
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            found.append(f"{address}: runs off the side")

    now, station = timezone.now(), reverse("annotate:enter", args=["circles"])
    look(station)
    admission.consent(rater=rater, text=text, by=user, now=now)
    look(station)
    admission.read_guideline(rater=rater, guideline=guideline, by=user, now=now)
    look(station)
    taught = road.rate(rater, now, first_error=2)
    look(station)
    admission.read_lesson(assignment_id=taught.pk, rater_id=rater.pk, by=user, now=now)
    look(station)
    road.rate(rater, now, first_error=0)
    look(station)
    admission.try_again(rater_id=rater.pk, by=user, now=now)
    road.rate(rater, now, first_error=0)
    Project.objects.update(screened_out_code="OUT")
    look(station)
    admission.admit(rater_id=rater.pk, by=way.lead, now=now)
    look(station)
    look(reverse("annotate:guideline", args=["circles"]))
    look(reverse("annotate:done", args=["circles"]))
    assert not found, "\n".join(found)
