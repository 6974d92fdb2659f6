"""From an invitation to the first submission: consent, guideline, training, screening, work."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from labeling import onboarding
from labeling.models import Assignment, Consent, GuidelineAcknowledgment, Project, Rater, ScreeningResult, Submission
from labeling.projects import lifecycle
from people import crowd_workers
from people.models import WorkerDevice
from tests.journeys.conftest import Visit
from tests.journeys.onboarding_steps import (
    PRIMARY,
    REVIEW_CONSENT,
    OnboardingJourney,
    agree_and_read,
    focus_by_tab,
    press_control,
    rate_trace,
    wait_for_gate,
)
from tests.journeys.test_pages import faults
from tests.labeling import onboarding_project

pytestmark = pytest.mark.django_db(transaction=True)


def test_invitation_to_first_submit_by_keyboard_alone(visit: Visit) -> None:
    way = OnboardingJourney()
    page = visit()
    page.goto(way.invite())
    expect(page.get_by_role("heading", name="Circles", level=1)).to_be_visible()
    focus_by_tab(page, "#id_username")
    page.keyboard.type("ines")
    focus_by_tab(page, "#id_password")
    page.keyboard.type("seven green ladders")
    page.keyboard.press("Enter")
    agree_and_read(page)
    wait_for_gate(page, "training")
    press_control(page, "[data-begin]")
    rate_trace(page, "Training 1", "31")
    expect(page.locator("[data-outcome=found]")).to_be_visible()
    expect(page.locator(".dock [type=submit]")).to_be_focused()
    page.keyboard.press("Enter")
    wait_for_gate(page, "screening")
    press_control(page, "[data-begin]")
    rate_trace(page, "Screening 1", "31")
    wait_for_gate(page, "work")
    expect(page.locator("[data-screening='1/1']")).to_be_visible()
    press_control(page, "[data-begin]")
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


def test_training_answer_shows_the_guideline_rating_and_stays_until_confirmed(visit: Visit) -> None:
    way = OnboardingJourney(training=2)
    page = visit(way.annotator(), "/")
    page.locator(REVIEW_CONSENT).click()
    agree_and_read(page)
    page.locator("[data-begin]").click()
    rate_trace(page, "Training 1", "331")  # the error is in the second step
    page.keyboard.press("Enter")  # a doubled key must not skip the answer
    expect(page.locator("[data-outcome=missed]")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("[data-outcome=missed]")).to_be_visible()
    assert not page.locator(".dock [type=submit]").evaluate("node => node === document.activeElement")
    expect(page.locator("#step-2 [data-guideline]")).to_have_attribute("data-guideline", "-1")
    expect(page.locator("#step-2 [data-rating]")).to_have_attribute("data-rating", "1")
    expect(page.locator("#step-2 .katex").first).to_be_visible()
    # Before the next trace, the work page leads back to the answer.
    page.goto("/")
    page.locator("#main a[href='/enter/circles/']").click()
    expect(page.locator("[data-outcome=missed]")).to_be_visible()
    page.goto(reverse("annotate:work", args=["circles"]))
    expect(page.locator(".dock [type=submit]")).to_be_focused()
    page.keyboard.press("Enter")
    rate_trace(page, "Training 2", "31")
    expect(page.locator("[data-outcome=found]")).to_be_visible()


def test_failed_screening_shows_the_result_and_what_happens_next(visit: Visit) -> None:
    way = OnboardingJourney(training=0, screening=1, screening_attempts=2)
    page = visit(way.annotator(), "/")
    page.locator(REVIEW_CONSENT).click()
    agree_and_read(page)
    press_control(page, "[data-begin]")
    rate_trace(page, "Screening 1", "333")
    wait_for_gate(page, "retry")
    expect(page.locator("[data-screening='0/1']")).to_be_visible()
    press_control(page, PRIMARY)
    wait_for_gate(page, "screening")
    press_control(page, "[data-begin]")
    rate_trace(page, "Screening 1", "1")
    wait_for_gate(page, "failed")
    expect(page.locator("main")).to_contain_text("Elena Marchetti")
    assert ScreeningResult.objects.filter(has_passed=False).count() == 2
    page.goto(reverse("annotate:work", args=["circles"]))
    wait_for_gate(page, "failed")
    page.goto("/")
    expect(page.locator("#main a[href='/enter/circles/']")).to_be_visible()


def test_new_guideline_is_read_before_the_next_trace(visit: Visit) -> None:
    way = OnboardingJourney(training=0, screening=0)
    page = visit(way.annotator(), "/")
    page.locator(REVIEW_CONSENT).click()
    agree_and_read(page)
    press_control(page, "[data-begin]")
    expect(page.locator("#step-0")).to_contain_text("Work 0.")
    page.keyboard.press("3")
    expect(page.locator("#save[data-state=saved]")).to_be_visible()
    lifecycle.publish_guideline(
        project=way.project, body="# New\n\nUnits count.", changes="Units count.", by=way.lead, now=timezone.now()
    )
    # The open trace can be finished.
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    wait_for_gate(page, "guideline")
    expect(page.locator("[data-read-version='1']")).to_contain_text("Units count.")
    press_control(page, PRIMARY)
    wait_for_gate(page, "work")
    press_control(page, "[data-begin]")
    expect(page.locator("#step-0")).to_contain_text("Work 1.")
    versions = Assignment.objects.filter(opened_at__isnull=False).order_by("opened_at")
    assert list(versions.values_list("guideline__version", "state")) == [(1, "submitted"), (2, "opened")]


def test_crowd_worker_joins_returns_and_gets_the_completion_code(visit: Visit) -> None:
    way = OnboardingJourney(training=0, screening=0)
    Project.objects.filter(pk=way.project.pk).update(
        takes_worker_ids=True, completion_code="C1X9", completion_url="https://platform.example/done?cc=C1X9"
    )
    invitation = way.invite(uses=5)
    address = f"{invitation}?PROLIFIC_PID=5f3a91d2&STUDY_ID=study&SESSION_ID=one"
    page = visit()
    page.goto(address)
    expect(page.get_by_text("5f3a91d2")).to_be_visible()
    expect(page.locator("[data-join=worker] [type=submit]")).to_be_focused()
    page.keyboard.press("Enter")
    agree_and_read(page)
    press_control(page, "[data-begin]")
    for n in range(2):
        rate_trace(page, f"Work {n}.", "33")
    expect(page.locator("#step-0")).to_contain_text("Work 2.")
    expect(page.locator("#save[data-state=saved]")).to_be_visible()  # both are submitted
    again = visit()
    again.goto(address)
    again.locator("[data-join=worker] [type=submit]").click()
    expect(again.locator("[data-page=device-waiting]")).to_be_visible()
    device = WorkerDevice.objects.get(released_at=None)
    crowd_workers.release_device(device=device, by=way.lead, now=timezone.now())
    again.goto(address)
    again.locator("[data-join=worker] [type=submit]").click()
    wait_for_gate(again, "work")
    press_control(again, "[data-begin]")
    rate_trace(again, "Work 2.", "33")
    again.locator("a[data-when-saved]").click()
    expect(again.locator("[data-page=completion]")).to_have_attribute("data-traces", "3")
    expect(again.get_by_text("C1X9", exact=True)).to_be_visible()
    expect(again.locator(".completion a")).to_have_attribute("href", "https://platform.example/done?cc=C1X9")
    stranger = visit()
    stranger.goto(f"{invitation}?PROLIFIC_PID=%7B%7B%25PROLIFIC_PID%25%7D%7D")
    expect(stranger.locator("[data-page=worker-rejected]")).to_be_visible()


def test_onboarding_works_without_javascript(visit: Visit) -> None:
    way = OnboardingJourney()
    user = way.annotator()
    page = visit(user, "/", java_script_enabled=False)
    page.locator(REVIEW_CONSENT).click()
    page.locator("[name=agrees]").check()
    page.locator(PRIMARY).click()
    wait_for_gate(page, "guideline")
    page.locator(PRIMARY).click()
    page.locator("[data-begin]").click()
    expect(page.locator("noscript .note")).to_be_visible()
    finish_training(user)
    page.goto("/")
    page.locator("#main a[href='/enter/circles/']").click()
    expect(page.get_by_text(r"\boxed{124\pi}")).to_be_visible()
    page.locator(".dock [type=submit]").click()
    wait_for_gate(page, "screening")


def finish_training(user: User) -> None:
    rater = Rater.objects.get(user=user)
    onboarding_project.rate_next(rater, timezone.now(), first_error=2)


def test_leaving_instead_of_consenting(visit: Visit) -> None:
    way = OnboardingJourney()
    user = way.annotator()
    page = visit(user, "/")
    page.locator(REVIEW_CONSENT).click()
    page.locator("form[action$='/decline'] [type=submit]").click()
    expect(page.locator("[data-no-projects]")).to_be_visible()
    assert Rater.objects.get(user=user).removed_at is not None


@pytest.mark.parametrize("width", [1440, 390])
def test_onboarding_pages_are_accessible(width: int, visit: Visit) -> None:
    way = OnboardingJourney(screening_attempts=2)
    user = way.annotator()
    rater = Rater.objects.select_related("project__guideline", "project__consent_text").get(user=user)
    text, guideline = rater.project.consent_text, rater.project.guideline
    assert text is not None
    assert guideline is not None
    page = visit(user, width=width)
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
    look(reverse("dashboard:members", args=["circles"]), visit(way.lead, width=width))
    stranger = visit(width=width)
    for worker in ("5f3a91d2c4b1", "%7B%7B"):
        look(f"{way.invite()}?PROLIFIC_PID={worker}&STUDY_ID=67aa01", stranger)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("width", [1440, 390])
def test_work_states_are_accessible(width: int, visit: Visit) -> None:
    """Before work, without work, after a guideline change, and paused."""
    way = OnboardingJourney(training=0, screening=0)
    user = way.annotator()
    rater = Rater.objects.select_related("project__guideline", "project__consent_text").get(user=user)
    now, station = timezone.now(), reverse("annotate:enter", args=["circles"])
    onboarding.admit_rater(rater_id=rater.pk, by=way.lead, now=now)
    Rater.objects.update(agreed_text=rater.project.consent_text, read_guideline=rater.project.guideline)
    page = visit(user, width=width)
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
