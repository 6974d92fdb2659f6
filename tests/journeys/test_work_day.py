"""Beside the trace: rules and guideline, questions to the leads, the figures of the day, breaks and leases."""

import datetime as dt
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from labeling.models import Assignment, Submission
from labeling.models.gold import GoldUse
from labeling.projects import lifecycle, rating_rules
from labeling.quality.gold import make_gold
from people import member_messages, members
from people.models import MemberMessage, Role
from tests import factories
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_closed_page import KEPT
from tests.journeys.test_work import RaterDay, eventually, press, ratings, saved
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db(transaction=True)
GUIDELINE = "# Rate agents\n\nFollow $x^2$ rules.\n\n" + "One more rule.\n\n" * 80
THREE: list[str | list[str]] = ["One.", "Two.", "Three."]


def day_with_guideline(*traces: list[str | list[str]], **settings: Any) -> RaterDay:
    day = RaterDay(*traces, rating_rules=rating_rules.copy_template("agents"), **settings)
    guideline = lifecycle.publish_guideline(project=day.project, body=GUIDELINE, by=None, now=timezone.now())
    day.user.raters.update(read_guideline=guideline)
    return day


def show_menu(page: Page) -> None:
    page.locator("#help").evaluate("help => help.showPopover()")


@pytest.mark.parametrize("width", [1440, 390])
def test_guideline_opens_beside_the_trace(visit: Visit, width: int) -> None:
    day = day_with_guideline(THREE)
    page = day.begin(visit(day.user, width=width))
    press(page, "3")
    page.locator("[data-act=guide]").click()
    panel = page.locator("#panel")
    expect(panel.locator("[data-guideline='1'] .rules li")).to_have_count(3)
    expect(panel.locator(".katex").first).to_be_attached()
    assert page.url.endswith(f"/work/{day.project.slug}/")
    page.wait_for_timeout(300)
    assert not accessibility_violations(page)
    if width == 1440:
        press(page, "2")  # the trace can be rated meanwhile
        expect(page.locator("#where")).to_have_attribute("data-step", "3")
        press(page, "r")
    else:
        press(page, "2")  # the panel covers the steps: nothing is rated
        page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#where")).to_have_attribute("data-step", "3" if width == 1440 else "2")
    eventually(page, lambda: ratings() == [1, 0] if width == 1440 else ratings() == [1])


def test_kinds_of_errors_are_the_projects_own(visit: Visit) -> None:
    day = day_with_guideline(THREE, asks_error_category=True)
    page = day.begin(visit(day.user))
    press(page, "1")
    expect(page.locator(".errorbox .chip input").first).to_have_attribute("value", "tool")


def test_question_is_answered_without_leaving_the_page(visit: Visit) -> None:
    day = day_with_guideline(["Zero.", *THREE], ["Next."])
    lead = factories.make_user(name="Lena")
    members.add_member(project=day.project, user=lead, role=Role.LEAD, now=timezone.now())
    page = day.begin(visit(day.user))
    press(page, "3q")  # about the step just rated
    panel = page.locator("#panel")
    panel.locator("textarea").fill("Is that all?")
    page.reload()
    expect(page.locator("html[data-ready] .step.is-now")).to_be_visible()
    page.locator("#step-0").click()
    press(page, "q")
    expect(panel.locator("textarea")).to_have_value("Is that all?")  # what was typed is kept
    panel.locator("[type=submit]").first.dblclick()  # sends it once
    expect(panel.locator("[data-talk='0'][data-open=yes]")).to_be_visible()
    expect(page.locator("#step-0 [data-asked=asked_open]")).to_be_visible()
    expect(panel.locator("textarea")).to_have_value("")
    page.wait_for_timeout(300)
    assert not accessibility_violations(page)
    question = MemberMessage.objects.get()
    assert (question.text, question.step, question.step_number) == ("Is that all?", 0, 1)

    lead_page = visit(lead)
    lead_page.goto(reverse("dashboard:trace", args=[day.project.slug, question.trace_id]))
    assert not accessibility_violations(lead_page)
    lead_page.locator("#questions ~ * textarea, section:has(#questions) textarea").first.fill("It is.")
    lead_page.locator("[data-answer] [type=submit]").click()
    expect(lead_page.locator("[data-talk='0'][data-open=no]")).to_be_visible()

    page.reload()  # later, or with the next trace; a minute on the same page would do as well
    mark = page.locator("#step-0 [data-asked=asked_news]")
    expect(mark).to_be_visible()
    mark.click()
    expect(panel.locator("[data-from=lead]")).to_contain_text("It is.")
    panel.locator("[data-read] button").click()
    expect(page.locator("#step-0 [data-asked=asked_done]")).to_be_visible()
    expect(page.locator("#unread [data-message]")).to_have_count(0)
    assert page.url.endswith(f"/work/{day.project.slug}/")


def test_answer_appears_while_the_same_trace_is_open(visit: Visit) -> None:
    day = day_with_guideline(THREE)
    lead = factories.make_user()
    theirs = members.add_member(project=day.project, user=lead, role=Role.LEAD, now=timezone.now())
    page = visit(day.user)
    page.clock.install()
    day.begin(page)
    press(page, "q")
    page.locator("#panel textarea").fill("Why?")
    page.locator("#panel textarea").press("Control+Enter")
    expect(page.locator("#step-0 [data-asked=asked_open]")).to_be_visible()
    question = MemberMessage.objects.get()
    member_messages.send_message(
        membership=question.membership, trace=question.trace, step=0, text="So.", by=theirs.user, now=timezone.now()
    )
    news = page.locator("#step-0 [data-asked=asked_news]")
    for _ in range(60):  # the page's clock runs ahead of the server, whose answer takes real time
        page.clock.run_for(5000)
        page.wait_for_timeout(100)
        if news.is_visible():
            break
    expect(news).to_be_visible()
    expect(page.locator("#panel [data-from=lead]")).to_contain_text("So.")


def test_unsent_question_is_kept_offline(visit: Visit) -> None:
    day = day_with_guideline(THREE)
    page = day.begin(visit(day.user))
    press(page, "q")
    page.locator("#panel textarea").fill("Why?")
    page.context.set_offline(True)
    page.locator("#panel [type=submit]").click()
    expect(page.locator("#toast")).to_be_visible()
    expect(page.locator("#panel textarea")).to_have_value("Why?")
    page.context.set_offline(False)
    page.locator("#panel [type=submit]").click()
    expect(page.locator("#panel [data-talk='0']")).to_be_visible()
    assert MemberMessage.objects.count() == 1


def test_figures_of_the_day_follow_each_submission(visit: Visit) -> None:
    day = day_with_guideline(["One."], ["Two."], pay_per_hour=36)
    page = visit(day.user)
    page.clock.install()
    day.begin(page)
    expect(page.locator("#day-figures")).to_have_attribute("data-traces", "0")
    page.clock.run_for(21_000)
    press(page, "3")
    page.keyboard.press("Enter")
    page.clock.run_for(3000)
    expect(page.locator("#day-figures")).to_have_attribute("data-traces", "1")
    page.locator("[popovertarget=day]").click()
    expect(page.locator("#day")).to_be_visible()
    assert not accessibility_violations(page)


def work_for(page: Page, minutes: int) -> None:
    """Move through the trace for this long."""
    for number in range(minutes * 3):
        page.keyboard.press("ArrowDown" if number % 2 else "ArrowUp")
        page.clock.run_for(20_000)


def test_break_is_suggested_once_and_can_be_put_off_or_switched_off(visit: Visit) -> None:
    day = day_with_guideline(THREE, lease_seconds=36_000)
    day.user.break_minutes = 25
    day.user.save()
    page = visit(day.user)
    page.clock.install()
    day.begin(page)
    reminder = page.locator("#reminder")
    work_for(page, 24)
    expect(reminder).to_be_hidden()
    work_for(page, 3)
    expect(reminder).to_have_attribute("data-kind", "break")
    expect(reminder).to_be_visible()
    assert not accessibility_violations(page)
    reminder.locator("[data-slot=act]").click()  # in ten minutes
    work_for(page, 8)
    expect(reminder).to_be_hidden()
    work_for(page, 4)
    expect(reminder).to_be_visible()
    reminder.locator("[data-slot=close]").click()
    page.clock.fast_forward(6 * 60_000)
    work_for(page, 5)
    expect(reminder).to_be_hidden()
    page.locator("[popovertarget=day]").click()
    page.locator("[data-break] select").select_option("0")
    page.locator("[data-break] [type=submit]").click()
    eventually(page, lambda: type(day.user).objects.get(pk=day.user.pk).break_minutes == 0)


def test_end_of_the_lease_is_told_before_and_can_be_put_off(visit: Visit) -> None:
    day = day_with_guideline(THREE, lease_seconds=1200)
    page = visit(day.user)
    page.clock.install()
    day.begin(page)
    reminder = page.locator("#reminder")
    page.clock.run_for(21_000)
    expect(reminder).to_be_hidden()
    page.clock.fast_forward(16 * 60_000)
    page.clock.run_for(6000)
    expect(reminder).to_have_attribute("data-kind", "lease")
    expect(reminder).to_be_visible()
    assert not accessibility_violations(page)
    before = Assignment.objects.get().lease_ends_at
    Assignment.objects.update(lease_ends_at=timezone.now() + dt.timedelta(minutes=4))
    reminder.locator("[data-slot=act]").click()
    expect(reminder).to_be_hidden()
    eventually(page, lambda: Assignment.objects.filter(lease_ends_at__gte=before).exists())
    assert Submission.objects.count() == 0
    saved(page)


def test_other_pages_send_what_waits_in_the_browser(visit: Visit) -> None:
    day = day_with_guideline(THREE, ["Next."])
    page = day.begin(visit(day.user))
    context = page.context
    press(page, "33")
    eventually(page, lambda: Assignment.objects.filter(state="held").exists())
    saved(page)
    context.set_offline(True)
    press(page, "1")
    page.keyboard.press("Enter")
    eventually(page, lambda: "submit" in page.evaluate(KEPT))
    page.close()
    context.set_offline(False)
    context.route("**/submit", lambda route: route.abort())
    home = context.new_page()
    home.goto("/")
    note = home.locator("#waiting-labels")
    expect(note.locator("[data-slot=waiting]")).to_be_visible()
    expect(note.locator("a")).to_have_attribute("href", f"/work/{day.project.slug}/")
    assert not accessibility_violations(home)
    context.unroute("**/submit")
    home.goto("/keys/")
    eventually(home, lambda: Submission.objects.filter(finish_reason="found_error").exists())
    eventually(home, lambda: home.evaluate(KEPT) == [])
    expect(note).to_be_hidden()


def test_training_answer_is_disputed_on_its_page(visit: Visit) -> None:
    day = day_with_guideline()
    rater = day.user.raters.get()
    trace = factories.make_trace(day.project, ["One.", ["Two.", "2."], "Three."])
    make_gold(trace=trace, use=GoldUse.TRAINING, accepted_first_errors=[1], by=None, now=timezone.now())
    type(rater).objects.update(stage="training")
    row = submitted_work.submit_trace(rater, trace, [-1], purpose="training", now=timezone.now())
    page = visit(day.user)
    page.goto(reverse("annotate:lesson", args=[row.pk]))
    dispute = page.locator("[data-dispute='0']")
    dispute.locator("summary").click()
    dispute.locator("textarea").fill("The first step is wrong too.")
    assert not accessibility_violations(page)
    dispute.locator("[type=submit]").click()
    expect(page.locator("[data-talk='0'][data-open=yes]")).to_be_visible()
    assert MemberMessage.objects.get().kind == "dispute"
