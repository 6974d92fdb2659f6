"""Unsent ratings of a closed page are sent by the next page."""

import pytest
from playwright.sync_api import Page, Route, expect

from labeling.models import Assignment, Submission
from tests.journeys.conftest import Visit
from tests.journeys.test_work import RaterDay, eventually, press

pytestmark = pytest.mark.django_db(transaction=True)

# The unsent items in the browser's storage.
UNSENT = """async () => {
  const settled = (request) => new Promise((done) => (request.onsuccess = () => done(request.result)));
  const [{ name }] = await indexedDB.databases();
  const database = await settled(indexedDB.open(name));
  const items = await settled(database.transaction("items").objectStore("items").getAll());
  database.close();
  return items.map((item) => item.verb ?? item.kind);
}"""

# Lock the storage for most of a second, so that writes wait.
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


def test_next_trace_is_shown_after_the_last_one_is_stored(visit: Visit) -> None:
    """Closing the tab is safe once the next trace is shown, even with a slow disk."""
    day = RaterDay(["One."], ["Two."])
    page = day.begin(visit(day.user))
    press(page, "3")
    eventually(page, lambda: Assignment.objects.filter(state="held").exists())
    page.evaluate(BUSY)
    page.keyboard.press("Enter")
    expect(page.locator("#step-0")).to_contain_text("Two.")
    assert page.evaluate("window.isBusy") is False


def test_trace_submitted_by_a_closed_page_is_not_shown_again(visit: Visit) -> None:
    """The trace was prefetched and rated while requests were blocked. The next page sends the submission and claims a
    trace at the same time, and the response to the claim may be older than the stored submission."""
    day = RaterDay(["One."], ["Two."], ["Three."])
    page = day.begin(visit(day.user))
    press(page, "3")
    eventually(page, lambda: Assignment.objects.filter(state="held").exists())
    block_requests(page, "open", "record")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
    block_requests(page, "submit", "claim")
    expect(page.locator("#step-0")).to_contain_text("Two.")
    press(page, "3")
    page.keyboard.press("Enter")
    eventually(page, lambda: "submit" in page.evaluate(UNSENT))
    again = page.context.new_page()
    page.close()
    _claim_before_the_submission_and_answer_after(again)
    day.begin(again)
    expect(again.locator("#step-0")).to_contain_text("Three.")
    assert Submission.objects.count() == 2


def block_requests(page: Page, *verbs: str) -> None:
    """Leave these requests without a response until the page is closed."""
    for verb in verbs:
        page.route(f"**/{verb}", lambda route: None)


def _claim_before_the_submission_and_answer_after(page: Page) -> None:
    claimed: list[int] = []

    def send_late(route: Route) -> None:
        eventually(page, lambda: bool(claimed))
        route.continue_()

    def answer_late(route: Route) -> None:
        answer = route.fetch()
        claimed.append(answer.status)
        eventually(page, lambda: not page.evaluate(UNSENT))
        route.fulfill(response=answer)

    page.route("**/submit", send_late)
    page.route("**/claim", answer_late)
