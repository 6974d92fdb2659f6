"""From an invitation into the work: agree, read, train, be screened, rate."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from labeling import onboarding
from labeling.models import Assignment, Consent, GuidelineAcknowledgment, Project, Rater, ScreeningResult, Submission
from labeling.projects import lifecycle
from tests.journeys.conftest import Visit
from tests.journeys.onboarding_steps import (
    OnboardingJourney,
    agree_and_read,
    focus_by_tab,
    press_control,
    rate_trace,
    wait_for_heading,
)
from tests.journeys.test_pages import faults
from tests.labeling.onboarding import onboarding_project

pytestmark = pytest.mark.django_db(transaction=True)


def test_invitation_to_first_submit_by_keyboard_alone(visit: Visit) -> None:
    way = OnboardingJourney()
    page = visit()
    page.goto(way.invite())
    wait_for_heading(page, "Circles")
    focus_by_tab(page, "User name")
    page.keyboard.type("ines")
    focus_by_tab(page, "Password")
    page.keyboard.type("seven green ladders")
    page.keyboard.press("Enter")
    agree_and_read(page)
    wait_for_heading(page, "Training")
    press_control(page, "Begin the training")
    rate_trace(page, "Training 1", "31")
    expect(page.get_by_text("You found the first error.")).to_be_visible()
    expect(page.get_by_role("button", name="End of the training: go on")).to_be_focused()
    page.keyboard.press("Enter")
    wait_for_heading(page, "Screening")
    press_control(page, "Begin the screening")
    rate_trace(page, "Screening 1", "31")
    wait_for_heading(page, "Screening passed")
    press_control(page, "Start work")
    rate_trace(page, "Work 0.", "33")
    expect(page.locator("#step-0")).to_contain_text("Work 1.")
    expect(page.locator("#save[data-state=saved]")).to_be_visible()
    ines = Rater.objects.get(user__username="ines")
    assert list(Submission.objects.order_by("pk").values_list("assignment__purpose", flat=True)) == [
        "training",
        "screening",
        "work",
    ]
    assert (Consent.objects.get().rater, GuidelineAcknowledgment.objects.get().rater) == (ines, ines)


def test_answer_to_a_training_trace_says_what_the_guideline_says_and_survives_a_reload(visit: Visit) -> None:
    way = OnboardingJourney(training=2)
    page = visit(way.annotator())
    page.get_by_role("link", name="Agree first Circles").click()
    agree_and_read(page)
    page.get_by_role("link", name="Begin the training").click()
    rate_trace(page, "Training 1", "331")  # the error is in the second step
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
    rate_trace(page, "Training 2", "31")
    expect(page.get_by_text("You found the first error.")).to_be_visible()


def test_failing_is_told_plainly_and_what_comes_next(visit: Visit) -> None:
    way = OnboardingJourney(training=0, screening=1, screening_attempts=2)
    page = visit(way.annotator())
    page.get_by_role("link", name="Agree first Circles").click()
    agree_and_read(page)
    press_control(page, "Begin the screening")
    rate_trace(page, "Screening 1", "333")
    wait_for_heading(page, "Not passed this time")
    expect(page.get_by_text("0 of 1")).to_be_visible()
    press_control(page, "Begin attempt 2")
    wait_for_heading(page, "Screening")
    press_control(page, "Begin the screening")
    rate_trace(page, "Screening 1", "1")
    wait_for_heading(page, "The screening was not passed")
    expect(page.get_by_text("A lead can give you another attempt: ask Elena Marchetti.")).to_be_visible()
    assert ScreeningResult.objects.filter(has_passed=False).count() == 2
    page.goto(reverse("annotate:work", args=["circles"]))
    wait_for_heading(page, "The screening was not passed")
    page.goto("/")
    expect(page.get_by_role("link", name="Not passed Circles")).to_be_visible()


def test_guideline_that_changes_in_the_middle_is_read_before_the_next_trace(visit: Visit) -> None:
    way = OnboardingJourney(training=0, screening=0)
    page = visit(way.annotator())
    page.get_by_role("link", name="Agree first Circles").click()
    agree_and_read(page)
    press_control(page, "Start work")
    expect(page.locator("#step-0")).to_contain_text("Work 0.")
    page.keyboard.press("3")
    expect(page.locator("#save[data-state=saved]")).to_be_visible()
    lifecycle.publish_guideline(
        project=way.project, body="# New\n\nUnits count.", changes="Units count.", by=way.lead, now=timezone.now()
    )
    # What is in hand is finished.
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    wait_for_heading(page, "Guideline")
    expect(page.get_by_text("The guideline has changed since you read version 1.")).to_be_visible()
    expect(page.get_by_text("What is new: Units count.")).to_be_visible()
    press_control(page, "I have read it")
    wait_for_heading(page, "You can go on")
    press_control(page, "Go on")
    expect(page.locator("#step-0")).to_contain_text("Work 1.")
    versions = Assignment.objects.filter(opened_at__isnull=False).order_by("opened_at")
    assert list(versions.values_list("guideline__version", "state")) == [(1, "submitted"), (2, "opened")]


def test_worker_of_a_crowd_platform_comes_in_comes_back_and_takes_the_code(visit: Visit) -> None:
    way = OnboardingJourney(training=0, screening=0)
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
    agree_and_read(page)
    press_control(page, "Start work")
    for n in range(2):
        rate_trace(page, f"Work {n}.", "33")
    expect(page.locator("#step-0")).to_contain_text("Work 2.")
    expect(page.locator("#save[data-state=saved]")).to_be_visible()  # both are at the server
    again = visit()
    again.goto(address)
    again.get_by_role("button", name="Begin").click()
    wait_for_heading(again, "You can go on")
    press_control(again, "Go on")
    rate_trace(again, "Work 2.", "33")
    again.get_by_role("link", name="Finish and get your completion code").click()
    wait_for_heading(again, "You have done 3 traces")
    expect(again.get_by_text("C1X9", exact=True)).to_be_visible()
    expect(again.get_by_role("link", name="Finish there")).to_have_attribute(
        "href", "https://platform.example/done?cc=C1X9"
    )
    stranger = visit()
    stranger.goto(f"{invitation}?PROLIFIC_PID=%7B%7B%25PROLIFIC_PID%25%7D%7D")
    wait_for_heading(stranger, "This link does not let you in")


def test_way_in_works_without_javascript(visit: Visit) -> None:
    way = OnboardingJourney()
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
    wait_for_heading(page, "Screening")


def finish_training(user: User) -> None:
    rater = Rater.objects.get(user=user)
    onboarding_project.rate_next(rater, timezone.now(), first_error=2)


def test_leaving_instead_of_agreeing(visit: Visit) -> None:
    way = OnboardingJourney()
    user = way.annotator()
    page = visit(user)
    page.get_by_role("link", name="Agree first Circles").click()
    page.get_by_role("button", name="Leave the project").click()
    expect(page.get_by_text("You belong to no project yet")).to_be_visible()
    assert Rater.objects.get(user=user).removed_at is not None


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)])
def test_stations_have_no_barrier(width: int, dark: bool, visit: Visit) -> None:
    way = OnboardingJourney(screening_attempts=2)
    user = way.annotator()
    rater = Rater.objects.select_related("project__guideline", "project__consent_text").get(user=user)
    text, guideline = rater.project.consent_text, rater.project.guideline
    assert text is not None
    assert guideline is not None
    page = visit(user, width=width, dark=dark)
    found: list[str] = []

    def look(address: str, page: Page = page) -> None:
        found.extend(faults(page, address))

    now, station = timezone.now(), reverse("annotate:enter", args=["circles"])
    look(station)
    onboarding.give_consent(rater=rater, text=text, by=user, now=now)
    look(station)
    onboarding.acknowledge_guideline(rater=rater, guideline=guideline, by=user, now=now)
    look(station)
    taught = onboarding_project.rate_next(rater, now, first_error=2)
    look(station)
    onboarding.acknowledge_feedback(assignment_id=taught.pk, rater_id=rater.pk, by=user, now=now)
    look(station)
    onboarding_project.rate_next(rater, now, first_error=0)
    look(station)
    look("/")
    onboarding.begin_next_attempt(rater_id=rater.pk, by=user, now=now)
    onboarding_project.rate_next(rater, now, first_error=0)
    Project.objects.update(screened_out_code="OUT", takes_worker_ids=True)
    look(station)
    look("/")
    look(reverse("annotate:lesson", args=[taught.pk]))
    look(reverse("dashboard:members", args=["circles"]), visit(way.lead, width=width, dark=dark))
    stranger = visit(width=width, dark=dark)
    for worker in ("5f3a91d2c4b1", "%7B%7B"):
        look(f"{way.invite()}?PROLIFIC_PID={worker}&STUDY_ID=67aa01", stranger)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)])
def test_places_of_the_work_have_no_barrier(width: int, dark: bool, visit: Visit) -> None:
    """Before it, without any left, after a change of the guideline, and paused."""
    way = OnboardingJourney(training=0, screening=0)
    user = way.annotator()
    rater = Rater.objects.select_related("project__guideline", "project__consent_text").get(user=user)
    now, station = timezone.now(), reverse("annotate:enter", args=["circles"])
    onboarding.admit_rater(rater_id=rater.pk, by=way.lead, now=now)
    Rater.objects.update(agreed_text=rater.project.consent_text, read_guideline=rater.project.guideline)
    page = visit(user, width=width, dark=dark)
    guideline, done, work = (reverse(f"annotate:{each}", args=["circles"]) for each in ("guideline", "done", "work"))
    found = [fault for address in (station, guideline, done) for fault in faults(page, address)]
    for _ in range(3):
        onboarding_project.rate_next(rater, now, first_error=0)
    Project.objects.update(completion_code="C1X9", completion_url="https://platform.example/done")
    found += [fault for address in (done, work, "/") for fault in faults(page, address)]
    lifecycle.publish_guideline(project=way.project, body="# New", changes="Units.", by=way.lead, now=now)
    found += [fault for address in ("/", station) for fault in faults(page, address)]
    Rater.objects.update(
        read_guideline=way.project.guidelines.get(version=2), paused_at=now, paused_reason="Let us talk."
    )
    found += [fault for address in (station, "/") for fault in faults(page, address)]
    assert not found, "\n".join(found)
