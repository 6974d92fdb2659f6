"""The work page stores what the annotator confirmed, whatever other tabs do. Also undo and keys."""

import datetime as dt
import json

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from labeling import queue
from labeling.models import Assignment, Judgment, Project, RatingEdit, StepReview, Submission
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, press, ratings, saved

pytestmark = pytest.mark.django_db(transaction=True)
SUBMITTED = "#notices [data-notice=submitted]"
SLOW_FETCH = """
    const { fetch } = window;
    window.fetch = async (url, options) => {
        if (String(url).endsWith("/%s")) await new Promise((resolve) => setTimeout(resolve, 700));
        return fetch(url, options);
    };
"""
THREE: list[str | list[str]] = ["One.", "Two.", "Three."]
ASKS = {"asks_reason": True, "asks_corrected_step": True, "asks_error_category": True}


def shown(page: Page) -> int:
    return int(page.locator("html").get_attribute("data-ready") or 0)


def lit(page: Page) -> str:
    return page.locator("#where").get_attribute("data-step") or ""


def submit(page: Page, keys: str, count: int = 1) -> None:
    press(page, keys)
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == count)


# --- several tabs and devices


def test_trace_submitted_on_another_device_takes_no_ratings(visit: Visit) -> None:
    day = RaterDay(THREE, ["Next."])
    laptop, phone = day.begin(visit(day.user)), day.begin(visit(day.user, width=390))
    assignment = shown(phone)
    submit(laptop, "333")
    press(phone, "1")
    expect(phone.locator(SUBMITTED)).to_have_attribute("data-assignment", str(assignment))
    expect(phone.locator(".dock[data-dead=true]")).to_be_visible()
    assert not accessibility_violations(phone)
    press(phone, "11")
    phone.keyboard.press("Enter")
    phone.wait_for_timeout(300)
    assert Submission.objects.get().finish_reason == "solution"
    assert RatingEdit.objects.filter(was_late=True).count() == 1  # the rating that caused the notice, and no more
    phone.locator(SUBMITTED).locator("button").last.click()
    expect(phone.locator("#step-0")).to_contain_text("Next.")
    assert Assignment.objects.get(pk=shown(phone)).state == "opened"


def test_trace_submitted_in_another_tab_is_told_at_once_and_can_be_edited(visit: Visit) -> None:
    day = RaterDay(THREE, ["Next."])
    first = day.begin(visit(day.user))
    second = day.begin(first.context.new_page())
    submit(first, "333")
    expect(second.locator(SUBMITTED)).to_be_visible()  # without a key
    see = second.locator(SUBMITTED).locator("a").get_attribute("href")
    assert see == f"/submitted/{Submission.objects.get().assignment_id}/"
    second.locator(SUBMITTED).locator("button").first.click()
    expect(second.locator("html[data-ready] [data-correction]")).to_be_visible()
    second.wait_for_timeout(800)  # keys so soon after the change were meant for the trace before
    press(second, "1")
    second.keyboard.press("Enter")
    eventually(second, lambda: Submission.objects.count() == 2)
    assert Submission.objects.get(revision=2).finish_reason == "found_error"


def test_submit_that_would_store_another_ending_comes_back(visit: Visit) -> None:
    day = RaterDay(THREE, ["Next.", "And on."])
    laptop, tablet = day.begin(visit(day.user)), day.begin(visit(day.user))
    press(laptop, "331")
    saved(laptop)
    expect(laptop.locator("#submit")).to_have_attribute("data-state", "first_error")
    tablet.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # it comes to the front
    expect(tablet.locator("#submit")).to_have_attribute("data-state", "first_error")
    tablet.locator("#step-2").click()
    press(tablet, "3")
    saved(tablet)
    trace = shown(laptop)
    laptop.keyboard.press("Enter")  # the button says: first error at step 3
    expect(laptop.locator("#notices [data-notice=refused]")).to_be_visible()
    assert Submission.objects.count() == 0
    expect(laptop.locator(f"html[data-ready='{trace}'] #step-2 .step__lost")).to_be_visible()
    expect(laptop.locator("#submit")).to_have_attribute("data-state", "no_error")
    laptop.wait_for_timeout(800)
    laptop.locator(".step__lost button").click()
    submit(laptop, "")
    assert Submission.objects.get().finish_reason == "found_error"


def test_refused_submit_is_told_on_the_next_page_if_this_one_closes(visit: Visit) -> None:
    day = RaterDay(THREE, ["Next."], ["And on."])
    laptop, tablet = visit(day.user), day.begin(visit(day.user))
    laptop.add_init_script(SLOW_FETCH % "content")
    day.begin(laptop)
    trace = shown(laptop)
    press(tablet, "331")
    saved(tablet)
    laptop.context.set_offline(True)
    press(laptop, "333")
    laptop.keyboard.press("Enter")
    with laptop.expect_response("**/submit"):
        laptop.context.set_offline(False)
    context = laptop.context
    laptop.close()
    again = day.begin(context.new_page())
    expect(again.locator(f"#notices [data-notice=refused][data-assignment='{trace}']")).to_be_visible()
    saved(again)
    assert Submission.objects.count() == 0


def test_other_tab_shows_new_ratings_without_a_key(visit: Visit) -> None:
    day = RaterDay(THREE)
    first = day.begin(visit(day.user))
    second = day.begin(first.context.new_page())
    press(first, "331")
    expect(first.locator("#submit")).to_have_attribute("data-state", "first_error")
    expect(second.locator("#submit")).to_have_attribute("data-state", "first_error")
    second.locator("#step-2").click()
    press(second, "3")
    expect(first.locator("#submit")).to_have_attribute("data-state", "no_error")
    expect(first.locator("#step-2 .step__lost[data-theirs='1'][data-yours='-1']")).to_be_visible()


def test_ratings_of_a_closed_tab_do_not_hold_up_the_submit(visit: Visit) -> None:
    """They come from another client, but the page shows them."""
    day = RaterDay(THREE, ["Next."])
    page = day.begin(visit(day.user))
    page.context.set_offline(True)
    press(page, "3")
    expect(page.locator("#save[data-waiting='1']")).to_be_visible()
    context = page.context
    page.close()
    context.set_offline(False)
    again = day.begin(context.new_page())
    submit(again, "33")
    assert ratings() == [1, 1, 1]
    expect(again.locator("#step-0")).to_contain_text("Next.")
    expect(again.locator("[data-notice]")).to_have_count(0)


ADD_ITEM = """([user, item]) => new Promise((resolve) => {
  const opening = indexedDB.open(`stepmark-${user}`);
  opening.onsuccess = () => {
    const adding = opening.result.transaction('items', 'readwrite');
    adding.objectStore('items').add(item);
    adding.oncomplete = resolve;
  };
})"""


def test_old_edit_left_in_the_store_is_shown_as_overruled(visit: Visit) -> None:
    """A failing disk keeps an edit although the server has it, and a later one."""
    day = RaterDay(THREE, protocol="every_step")
    page = day.begin(visit(day.user))
    press(page, "3k133")
    saved(page)
    old = RatingEdit.objects.get(sequence=1)
    item = {"assignment": old.assignment_id, "client": old.client, "sequence": 1, "seen": 0, "kind": "rate", "step": 0}
    page.evaluate(ADD_ITEM, [day.user.pk, {**item, "option": 0, "rating": 1, "flagged": False, "text": ""}])
    page.goto(f"/work/{day.project.slug}/")
    expect(page.locator("#step-0 .step__lost[data-theirs='-1'][data-yours='1']")).to_be_visible()
    expect(page.locator("#step-0 input[value='-1']")).to_be_checked()
    page.wait_for_timeout(800)  # Enter so soon may have been meant for another trace
    submit(page, "")
    assert ratings() == [-1, 1, 1]


def test_guideline_and_back_shows_the_same_trace(visit: Visit) -> None:
    day = RaterDay(["One."], THREE, ["Next."])
    page = day.begin(visit(day.user))
    submit(page, "3")
    expect(page.locator("#step-1")).to_be_visible()
    trace = shown(page)
    press(page, "33")
    saved(page)
    page.goto(f"/guideline/{day.project.slug}/")
    page.go_back()
    expect(page.locator(f"html[data-ready='{trace}']")).to_have_count(1)
    assert lit(page) == "3"
    eventually(page, lambda: Assignment.objects.opened().count() == 1)


def test_back_after_a_submit_shows_another_trace(visit: Visit) -> None:
    day = RaterDay(["One."], ["Two."])
    page = day.begin(visit(day.user))
    first = shown(page)
    submit(page, "3")
    expect(page.locator(f"html[data-ready]:not([data-ready='{first}'])")).to_have_count(1)
    page.goto("/")
    page.go_back()
    expect(page.locator("html[data-ready] .step.is-now")).to_be_visible()
    assert shown(page) != first
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")  # as from the history
    page.wait_for_load_state()
    expect(page.locator("html[data-ready] .step.is-now")).to_be_visible()
    assert Assignment.objects.opened().count() == 1


def test_every_open_trace_is_finished_before_a_new_one(visit: Visit) -> None:
    day = RaterDay(["One."], ["Two."], ["Three."])
    page = day.begin(visit(day.user))
    first = shown(page)
    Assignment.objects.update(opened_at=timezone.now() - dt.timedelta(hours=1))
    second = queue.claim_trace(rater_id=Assignment.objects.get().rater_id, now=timezone.now(), opened=True)
    page.goto("/")
    links = page.locator("[data-resume] a")
    expect(links).to_have_count(2)
    day.begin(page)
    assert shown(page) == second.assignment_id
    press(page, "3")
    page.keyboard.press("Enter")
    expect(page.locator(f"html[data-ready='{first}']")).to_have_count(1)


def test_page_without_a_trace_says_why_and_continues_after_a_login(visit: Visit) -> None:
    day = RaterDay(["One."], ["Two."], ["Three."])
    page = day.begin(visit(day.user))
    session = page.context.cookies()
    press(page, "3")
    eventually(page, lambda: Assignment.objects.filter(state="held").exists())
    page.context.clear_cookies(name="sessionid")  # logged out in another tab
    page.keyboard.press("Enter")
    expect(page.locator("#step-0")).to_contain_text("Two.")
    expect(page.locator("#save[data-state='logged-out'] [data-slot=login]")).to_be_visible()
    press(page, "3")
    page.keyboard.press("Enter")
    nothing = page.locator("[data-nothing=logged_out]")
    expect(nothing).to_be_visible()
    assert "{" not in nothing.inner_text()
    page.context.add_cookies(session)  # type: ignore[arg-type]  # what the browser itself has returned
    page.evaluate("dispatchEvent(new Event('focus'))")
    eventually(page, lambda: Submission.objects.count() == 2)
    expect(page.locator("#step-0")).to_contain_text("Three.")


# --- undo


def test_undo_works_across_a_reload_and_is_shown(visit: Visit) -> None:
    day = RaterDay(THREE, protocol="every_step", **ASKS)
    page = day.begin(visit(day.user))
    press(page, "31")
    page.locator(".errorbox .chip").nth(1).click()
    page.locator(".errorbox .chip").nth(2).click()
    saved(page)
    day.begin(page)
    press(page, "z")
    expect(page.locator(".errorbox .chip").nth(1).locator("input")).to_be_checked()
    eventually(page, lambda: Judgment.objects.filter(category="calculation").exists())
    page.locator(".errorbox .chip").nth(1).click()  # a second click takes the kind back
    eventually(page, lambda: not Judgment.objects.exclude(category="").exists())
    press(page, "zzz")
    expect(page.locator("#toast")).to_be_visible()
    eventually(page, lambda: ratings() == [1, None])


def test_undo_reaches_back_over_submit_and_edit_takes_one_key(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], ["Next.", "And on."], ["Last."])
    page = day.begin(visit(day.user))
    first = shown(page)
    submit(page, "33")
    expect(page.locator(f"html[data-ready]:not([data-ready='{first}'])")).to_have_count(1)
    expect(page.locator("#toast .toast__undo")).to_be_visible()
    second = shown(page)
    press(page, "z")
    expect(page.locator(f"html[data-ready='{first}'] [data-correction]")).to_be_visible()
    page.wait_for_timeout(800)
    page.locator("#step-1").click()
    press(page, "1")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 2)
    assert Submission.objects.get(revision=2).finish_reason == "found_error"
    expect(page.locator(f"html[data-ready='{second}']")).to_have_count(1)  # the trace that was open comes back
    page.wait_for_timeout(800)
    press(page, "3")
    press(page, "e")
    expect(page.locator(f"html[data-ready='{first}'] [data-correction]")).to_be_visible()


# --- no key acts on another trace than it was meant for


def test_skip_is_not_offered_where_it_cannot_be(visit: Visit) -> None:
    day = RaterDay(["One."], ["Two."], skip_limit_per_day=1)
    page = day.begin(visit(day.user))
    press(page, "s")
    page.keyboard.type("too long")
    page.keyboard.press("Enter")
    expect(page.locator("#step-0")).to_contain_text("Two.")
    press(page, "s")
    expect(page.locator("#ask")).to_be_hidden()
    press(page, "?")
    expect(page.locator("#help [data-act=report]")).to_be_visible()
    expect(page.locator("#help [data-act=skip]")).to_be_hidden()


@pytest.mark.parametrize("slow", ["skip", "claim"])
def test_refused_skip_brings_the_trace_back(slow: str, visit: Visit) -> None:
    """It does not matter which answer comes last: the one to the skip, or the next trace."""
    day = RaterDay(["One.", "And two."], ["Next.", "And on."], skip_limit_per_day=2)
    page = visit(day.user)
    page.add_init_script(SLOW_FETCH % slow)
    day.begin(page)
    refused = shown(page)
    Project.objects.update(skip_limit_per_day=0)
    press(page, "3")
    press(page, "s")
    page.keyboard.type("too long")
    page.keyboard.press("Enter")
    expect(page.locator("#notices [data-notice=refused]")).to_be_visible()
    expect(page.locator(f"html[data-ready='{refused}'] #step-0.is-rated")).to_be_visible()
    page.wait_for_timeout(800)
    assert shown(page) == refused
    submit(page, "3")
    assert Submission.objects.get().assignment_id == refused
    assert Assignment.objects.get(pk=refused).state == "submitted"


def test_refusal_of_a_skip_does_not_wait_for_the_next_trace(visit: Visit) -> None:
    """The next trace would come with the next message, which is sent after the refusal has been told."""
    day = RaterDay(["One.", "And two."], ["Next.", "And on."], ["Last."], skip_limit_per_day=2)
    page = day.begin(visit(day.user))
    refused = shown(page)
    Project.objects.update(skip_limit_per_day=0)
    skips: list[Route] = []
    page.route("**/skip", lambda route: skips.append(route))
    press(page, "3")
    eventually(page, lambda: Assignment.objects.filter(state="held").exists())
    press(page, "s")
    page.keyboard.type("too long")
    page.keyboard.press("Enter")
    expect(page.locator("#step-0")).to_contain_text("Next.")
    press(page, "33")
    page.keyboard.press("Enter")
    eventually(page, lambda: bool(skips))
    skips[0].continue_()
    expect(page.locator("#notices [data-notice=refused]")).to_be_visible()
    expect(page.locator(f"html[data-ready='{refused}'] #step-0.is-rated")).to_be_visible()
    eventually(page, lambda: Submission.objects.exclude(assignment=refused).count() == 1)
    page.wait_for_timeout(800)
    submit(page, "3", 2)
    assert Submission.objects.filter(assignment=refused).exists()
    assert ratings() == [1, 1, 1, 1]


def test_enter_submits_after_clicks(visit: Visit) -> None:
    day = RaterDay(THREE, ["Next."])
    page = day.begin(visit(day.user))
    for _ in range(3):
        page.locator(".dock [data-rate='1']").click()
    page.locator("[data-act=undo]").first.click()
    page.locator(".problem__fold").click()
    page.locator(".dock [data-rate='1']").click()
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
    assert ratings() == [1, 1, 1]


def test_unsure_and_comment_mean_the_step_just_rated(visit: Visit) -> None:
    day = RaterDay(THREE)
    page = day.begin(visit(day.user))
    press(page, "3")
    expect(page.locator("[data-act=unsure] [data-slot=subject]")).to_have_text("1")
    press(page, "u")
    expect(page.locator("#step-0 [data-slot=unsure]")).to_be_visible()
    page.keyboard.press("Shift+U")
    expect(page.locator("#step-1 [data-slot=unsure]")).to_be_visible()
    press(page, "j")  # the annotator chooses a step
    press(page, "u")
    expect(page.locator("#step-2 [data-slot=unsure]")).to_be_visible()
    press(page, "kk3c")
    page.keyboard.type("Why?")
    page.keyboard.press("Enter")
    eventually(page, lambda: StepReview.objects.filter(comment="Why?", step__position=0).exists())


def test_light_leaves_the_last_rating(visit: Visit) -> None:
    day = RaterDay(THREE)
    page = day.begin(visit(day.user))
    press(page, "3133")  # in rhythm over the first negative
    assert lit(page) == ""
    expect(page.locator("#submit.is-now")).to_be_visible()
    eventually(page, lambda: ratings() == [1, -1])
    press(page, "k")
    assert lit(page) == "2"


def test_enter_with_a_missing_rating_goes_there(visit: Visit) -> None:
    day = RaterDay(THREE)
    page = day.begin(visit(day.user))
    press(page, "3j3")
    page.keyboard.press("Enter")
    assert lit(page) == "2"


def test_doubled_enter_does_not_submit_the_next_trace(visit: Visit) -> None:
    day = RaterDay(["One."], ["Two."])
    page = day.begin(visit(day.user))
    press(page, "3")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator("#step-0")).to_contain_text("Two.")
    eventually(page, lambda: Submission.objects.count() == 1)
    saved(page)
    assert Submission.objects.count() == 1


def test_arrows_scroll_what_has_the_focus(visit: Visit) -> None:
    day = RaterDay(["$$" + "x_{1} + " * 120 + "1$$", "Two."])
    page = day.begin(visit(day.user))
    wide = page.locator("#step-0 .tex--display[tabindex='0']")
    wide.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert lit(page) == "1"
    eventually(page, lambda: page.evaluate("document.activeElement.scrollLeft > 0"))


@pytest.mark.parametrize(("mode", "focused"), [("off", False), ("focus", True)])
def test_single_key_shortcuts_can_be_switched_off_or_need_the_focus(mode: str, focused: bool, visit: Visit) -> None:
    day = RaterDay(THREE)
    day.user.work_keys = json.dumps({"mode": mode})
    day.user.save()
    page = day.begin(visit(day.user))
    press(page, "3u")
    assert lit(page) == "1"
    page.locator(".step.is-now").focus()
    press(page, "33")
    assert lit(page) == ("3" if focused else "1")
    page.locator(".dock [data-rate='1']").click()
    assert lit(page) == ("" if focused else "2")


def test_keys_of_an_input_method_do_nothing(visit: Visit) -> None:
    day = RaterDay(THREE)
    page = day.begin(visit(day.user))
    compose = """(target) => target.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }))"""
    press(page, "c")
    page.locator("#ask textarea").evaluate(compose)
    expect(page.locator("#ask")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("body").evaluate(compose.replace("'Enter'", "'3'"))
    assert lit(page) == "1"


def test_prompt_without_a_reason_says_so(visit: Visit) -> None:
    day = RaterDay(THREE)
    page = day.begin(visit(day.user))
    press(page, "g")
    page.keyboard.press("Enter")
    expect(page.locator("#toast")).to_be_visible()
    page.keyboard.type("I cannot read it.")  # the field is still open
    assert Submission.objects.count() == 0
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
