"""Unsent edits of a closed page."""

import pytest
from playwright.sync_api import Page, Route, expect

from labeling.models import Assignment, Judgment, Submission
from tests.journeys.conftest import Visit
from tests.journeys.test_work import RaterDay, eventually, press

pytestmark = pytest.mark.django_db(transaction=True)

# Return the unsent items in the browser's store.
KEPT = """async () => {
  const settled = (request) => new Promise((done) => (request.onsuccess = () => done(request.result)));
  const [{ name }] = await indexedDB.databases();
  const database = await settled(indexedDB.open(name));
  const items = await settled(database.transaction("items").objectStore("items").getAll());
  database.close();
  return items.map((item) => item.verb ?? item.kind);
}"""

# Block the store for most of a second, so that writes wait.
BUSY = """async () => {
  const [{ name }] = await indexedDB.databases();
  const opening = indexedDB.open(name);
  await new Promise((done) => (opening.onsuccess = done));
  const items = opening.result.transaction("items", "readwrite").objectStore("items");
  const ends = performance.now() + 800;
  window.isBusy = true;
  const look = () => (performance.now() < ends ? (items.count().onsuccess = look) : (window.isBusy = false));
  look();
}"""


def test_next_trace_appears_after_the_last_one_is_stored(visit: Visit) -> None:
    """The tab may be closed as soon as it is visible, however slow the disk is."""
    day = RaterDay(["One."], ["Two."])
    page = day.begin(visit(day.user))
    press(page, "3")
    eventually(page, lambda: Assignment.objects.filter(state="held").exists())
    page.evaluate(BUSY)
    page.keyboard.press("Enter")
    expect(page.locator("#step-0")).to_contain_text("Two.")
    assert page.evaluate("window.isBusy") is False


def test_trace_submitted_by_a_closed_page_does_not_return(visit: Visit) -> None:
    """A prefetched trace was submitted offline. The next page sends the submission and claims a trace together, so
    the claim may be answered before the server knows of the submission."""
    day = RaterDay(["One."], ["Two."], ["Three."])
    page = day.begin(visit(day.user))
    press(page, "3")
    eventually(page, lambda: Assignment.objects.filter(state="held").exists())
    stop(page, "open", "record")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
    stop(page, "submit", "claim")
    expect(page.locator("#step-0")).to_contain_text("Two.")
    press(page, "3")
    page.keyboard.press("Enter")
    eventually(page, lambda: "submit" in page.evaluate(KEPT))
    again = page.context.new_page()
    page.close()
    _claim_before_the_submit_and_hear_after(again)
    day.begin(again)
    expect(again.locator("#step-0")).to_contain_text("Three.")
    assert Submission.objects.count() == 2


def stop(page: Page, *verbs: str) -> None:
    """Block these requests until the page is closed."""
    for verb in verbs:
        page.route(f"**/{verb}", lambda route: None)


def _claim_before_the_submit_and_hear_after(page: Page) -> None:
    claimed: list[int] = []

    def send_late(route: Route) -> None:
        eventually(page, lambda: bool(claimed))
        route.continue_()

    def answer_late(route: Route) -> None:
        answer = route.fetch()
        claimed.append(answer.status)
        eventually(page, lambda: not page.evaluate(KEPT))
        route.fulfill(response=answer)

    page.route("**/submit", send_late)
    page.route("**/claim", answer_late)


def test_gathered_ratings_reach_the_server_when_the_page_is_left(visit: Visit) -> None:
    """They are sent in a pause; whoever leaves earlier does not wait for it."""
    day = RaterDay(["One.", "Two.", "Three.", "Four.", "Five."])
    page = day.begin(visit(day.user))
    page.clock.install()
    day.begin(page)
    press(page, "3")
    expect(page.locator("#save[data-state=gathered]")).to_be_visible()
    assert Judgment.objects.count() == 0
    page.clock.run_for(2700)  # of 5000; the rest is for a slow machine
    press(page, "3")  # half of the trace is not rated yet
    page.clock.run_for(2700)
    expect(page.locator("#save[data-state=gathered]")).to_be_visible()
    assert Judgment.objects.count() == 0
    page.goto("/accounts/password/")
    eventually(page, lambda: Judgment.objects.count() == 2)


def test_gathered_ratings_are_sent_in_a_pause(visit: Visit) -> None:
    day = RaterDay(["One.", "Two.", "Three."])
    page = visit(day.user)
    page.clock.install()
    day.begin(page)
    press(page, "3")
    page.clock.run_for(5100)
    expect(page.locator("#save[data-state=saved]")).to_be_visible()
    assert Judgment.objects.count() == 1
