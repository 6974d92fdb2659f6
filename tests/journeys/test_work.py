"""The work page in a browser: keyboard, touch, offline, two tabs."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts import rate_limits
from accounts.models import User
from labeling import queue
from labeling.models import Assignment, Judgment, Project, Submission
from people.models import Membership
from tests import factories
from tests.journeys.conftest import PATIENCE, Visit, accessibility_violations, violations_in_both_themes

pytestmark = pytest.mark.django_db(transaction=True)

MATHS: list[str | list[str]] = [
    "Factor: $n^2 + 3n = n(n + 3)$.",
    r"So \(12 \mid n(n+3)\) is asked for, and $5 and $6 stay prices.",
    ["Broken $\\frac{1}{$ shows its source.", "Mended: $\\frac{1}{2}$.", "Left out."],
    "<img src=x onerror=alert(1)> stays text.",
    "The sum is \\boxed{7725}.",
]


class RaterDay:
    """A project with work, and its annotator."""

    def __init__(self, *traces: list[str | list[str]], **settings: Any) -> None:
        self.project: Project = factories.make_project(overlap=1, **settings)
        lane = factories.make_lane(self.project, "uniform")
        for number, steps in enumerate(traces):
            factories.make_entry(lane, factories.make_trace(self.project, steps), key=-number)
        self.user: User = factories.make_user()
        factories.make_rater(self.project, self.user)
        Membership.objects.create(project=self.project, user=self.user, role="annotator", joined_at=timezone.now())

    def begin(self, page: Page) -> Page:
        page.goto(f"/work/{self.project.slug}/")
        expect(page.locator("html[data-ready] .step.is-now")).to_be_visible()  # keys work from here on
        return page


def press(page: Page, keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def ratings() -> list[int | None]:
    rows = Judgment.objects.order_by("turn__step__position", "option__position")
    return list(rows.values_list("rating", flat=True))


def saved(page: Page) -> None:
    """Wait until everything is saved and answered."""
    expect(page.locator("#save[data-state=saved]")).to_be_visible()


def expect_waiting(page: Page, count: int, *, is_persistent: bool = True) -> None:
    """Wait until so many ratings are unsent because the page is offline."""
    save = page.locator(f"#save[data-state=waiting][data-waiting='{count}']")
    expect(save).to_have_attribute("data-persistent", str(is_persistent).lower())
    expect(save).to_contain_text(str(count))


def eventually(page: Page, is_so: Callable[[], bool]) -> None:
    for _ in range(PATIENCE * 10):
        if is_so():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"it did not come about within {PATIENCE} seconds")


def test_first_error_with_alternatives_by_keyboard_alone(visit: Visit) -> None:
    day = RaterDay([*MATHS], ["Next one."])
    page = day.begin(visit(day.user))
    expect(page.locator("#submit")).to_have_attribute("data-state", "find_negative")
    press(page, "321")
    expect(page.locator("#submit")).to_have_attribute("data-state", "rate_alternatives")
    expect(page.locator("#step-3")).to_have_class("step is-past")
    press(page, "31")
    page.keyboard.press("Enter")
    expect(page.locator("#step-0")).to_contain_text("Next one.")
    eventually(page, lambda: Submission.objects.count() == 1)
    assert Submission.objects.get().finish_reason == "found_error"
    assert ratings() == [1, 0, -1, 1, -1]


def test_undo_restores_the_previous_state_and_a_held_key_rates_one_step(visit: Visit) -> None:
    day = RaterDay(["One.", "Two.", "Three."])
    page = day.begin(visit(day.user))
    page.keyboard.down("3")
    for _ in range(5):
        page.keyboard.down("3")  # the repeats of a held key
    page.keyboard.up("3")
    expect(page.locator("#where")).to_have_attribute("data-step", "2")
    press(page, "1zz")
    expect(page.locator("#where")).to_have_attribute("data-step", "1")
    eventually(page, lambda: ratings() == [None, None])


def test_ratings_beyond_the_quota_are_kept_and_sent_later(visit: Visit, settings: Any) -> None:
    day = RaterDay(["One.", "Two.", "Three.", "Four."])
    page = day.begin(visit(day.user))
    settings.RATE_LIMIT_FACTOR = 1
    in_a_while = time.time() + 4
    rate_limits.take({"writes": 1e6}, now=in_a_while, rater=Assignment.objects.get().rater_id)
    press(page, "31")
    expect(page.locator("#save[data-state=limited][data-waiting='2']")).to_be_visible()
    saved(page)
    assert ratings()[:2] == [1, -1]


def test_ratings_survive_a_network_failure_and_a_closed_tab(visit: Visit) -> None:
    day = RaterDay(["One.", "Two.", "Three.", "Four."])
    page = day.begin(visit(day.user))
    page.keyboard.press("3")
    eventually(page, lambda: ratings() == [1])
    saved(page)
    page.context.set_offline(True)
    press(page, "32")
    expect_waiting(page, 2)
    context = page.context
    page.close()
    context.set_offline(False)
    again = day.begin(context.new_page())
    expect(again.locator("#where")).to_have_attribute("data-step", "4")
    eventually(again, lambda: ratings() == [1, 1, 0])


def test_double_click_submits_once(visit: Visit) -> None:
    day = RaterDay(["One."], ["Two."])
    page = day.begin(visit(day.user))
    page.keyboard.press("3")
    page.locator("#submit").dblclick()
    expect(page.locator("#step-0")).to_contain_text("Two.")
    # Requests are sent in order, so the second click has arrived before the next submit.
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.values("assignment").distinct().count() == 2)
    assert Submission.objects.count() == 2


def test_expired_lease_loses_nothing(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], ["Next."])
    page = day.begin(visit(day.user))
    page.keyboard.press("3")
    eventually(page, lambda: ratings() == [1])
    saved(page)
    Assignment.objects.update(lease_ends_at=timezone.now())
    queue.lapse_expired_leases(now=timezone.now())
    press(page, "2")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
    assert ratings() == [1, 0]


def test_closing_the_page_releases_the_prefetched_trace(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], ["Next."])
    page = day.begin(visit(day.user))
    page.keyboard.press("3")
    eventually(page, lambda: Assignment.objects.filter(state="held").exists())
    page.goto("/")
    eventually(page, lambda: not Assignment.objects.filter(state="held").exists())


def test_device_whose_rating_was_overruled_shows_both_ratings(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."])
    first = day.begin(visit(day.user))
    second = day.begin(visit(day.user))
    first.keyboard.press("3")
    saved(first)  # so that it knows the new version
    first.keyboard.press("k")
    first.keyboard.press("1")  # based on the higher version, so it wins
    saved(first)
    assert ratings() == [-1]
    second.keyboard.press("2")
    expect(second.locator(".step__lost[data-theirs='-1'][data-yours='0']")).to_be_visible()
    second.locator(".step__lost button").click()
    eventually(second, lambda: ratings() == [0])


# A browser in private mode refuses to open the store; a full disk refuses writes.
NO_STORE = "IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError'); };"
FULL = "IDBObjectStore.prototype.add = () => { throw new DOMException('full', 'QuotaExceededError'); };"

# No answer at all: another page blocks the store, or the disk fails.
BLOCKED = "IDBFactory.prototype.open = () => ({});"
DEAD = """
  const silent = { add: () => ({}), getAll: () => ({}), delete: () => ({}) };
  IDBDatabase.prototype.transaction = () => ({ objectStore: () => silent });
"""


@pytest.mark.parametrize("refusing", [NO_STORE, FULL, BLOCKED, DEAD])
def test_rating_works_without_browser_storage(refusing: str, visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], ["Next."])
    page = visit(day.user)
    page.add_init_script(refusing)
    day.begin(page)
    page.context.set_offline(True)
    press(page, "3")
    expect_waiting(page, 1, is_persistent=False)
    page.context.set_offline(False)
    saved(page)
    expect(page.locator("#save")).to_have_attribute("data-persistent", "false")
    assert ratings() == [1]
    press(page, "3")
    page.keyboard.press("Enter")
    expect(page.locator("#step-0")).to_contain_text("Next.")
    eventually(page, lambda: Submission.objects.count() == 1)
    assert ratings() == [1, 1]


def test_storage_failure_loses_nothing(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], protocol="every_step")
    page = day.begin(visit(day.user))
    page.context.set_offline(True)
    press(page, "3")
    expect_waiting(page, 1)
    page.evaluate(DEAD)
    press(page, "1")
    expect_waiting(page, 2, is_persistent=False)
    page.context.set_offline(False)
    saved(page)
    assert ratings() == [1, -1]


# A disk so slow that the page stops waiting, and the database has the rating after all.
SLOW = """
  const { set } = Object.getOwnPropertyDescriptor(IDBTransaction.prototype, 'oncomplete');
  const wait = (transaction) => (transaction.mode === 'readwrite' ? 3000 : 0);
  Object.defineProperty(IDBTransaction.prototype, 'oncomplete', {
    set(done) { set.call(this, (event) => setTimeout(() => done.call(this, event), wait(this))); },
  });
"""


def test_slow_storage_loses_nothing(visit: Visit) -> None:
    day = RaterDay(["One.", "Two.", "Three."], ["Next."], protocol="every_step")
    page = visit(day.user)
    page.add_init_script(SLOW)
    day.begin(page)
    press(page, "321")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
    assert ratings() == [1, 0, -1]
    expect(page.locator("#step-0")).to_contain_text("Next.")
    saved(page)
    expect(page.locator("[data-notice]")).to_have_count(0)
    day.begin(page)
    expect(page.locator("#step-0")).to_contain_text("Next.")
    saved(page)  # nothing is left in the database
    assert page.evaluate(COUNT_ITEMS, day.user.pk) == 0


def test_late_copy_of_a_slow_disk_survives_a_closed_tab(visit: Visit) -> None:
    day = RaterDay(["One.", "Two.", "Three."])
    page = visit(day.user)
    page.add_init_script(SLOW)
    day.begin(page)
    page.context.set_offline(True)
    press(page, "3")
    expect_waiting(page, 1, is_persistent=False)
    page.wait_for_timeout(2000)  # the disk has answered
    assert page.evaluate(COUNT_ITEMS, day.user.pk) == 1
    context = page.context
    page.close()
    context.set_offline(False)
    again = day.begin(context.new_page())
    expect(again.locator("#where")).to_have_attribute("data-step", "2")
    eventually(again, lambda: ratings() == [1])


COUNT_ITEMS = """(user) => new Promise((resolve) => {
  const opening = indexedDB.open(`stepmark-${user}`);
  opening.onsuccess = () => {
    const counting = opening.result.transaction('items').objectStore('items').count();
    counting.onsuccess = () => resolve(counting.result);
  };
})"""


@pytest.mark.parametrize("width", [1440, 390])
def test_work_page_is_accessible_and_does_not_overflow(width: int, visit: Visit) -> None:
    day = RaterDay([*MATHS, "x = " + "1 + " * 200 + "1"], asks_error_category=True, asks_reason=True)
    page = day.begin(visit(day.user, width=width))
    expect(page.locator(".katex").first).to_be_visible()
    assert not violations_in_both_themes(page)
    press(page, "331")
    assert not violations_in_both_themes(page)
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def test_touch_rates_and_submits(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], ["Next."])
    page = day.begin(visit(day.user, width=390))
    page.locator(".dock [data-rate='1']").tap()
    page.locator(".dock [data-rate='0']").tap()
    page.locator("#submit").tap()
    expect(page.locator("#step-0")).to_contain_text("Next.")
    eventually(page, lambda: Submission.objects.count() == 1)


def test_changed_keys_rate_and_are_shown(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."])
    page = visit(day.user)
    page.goto("/keys/")
    page.locator("#id_positive").fill("h")
    page.locator("main .btn--go").click()
    expect(page.locator("[data-message=success]")).to_be_visible()
    day.begin(page)
    expect(page.locator(".dock__rate--pos kbd")).to_have_text("h")
    press(page, "3H")  # the old key does nothing, Caps Lock changes nothing
    expect(page.locator("#where")).to_have_attribute("data-step", "2")
    eventually(page, lambda: ratings() == [1])


def test_a_mistaken_correction_is_canceled(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."])
    page = day.begin(visit(day.user))
    press(page, "33")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
    page.goto("/")
    page.locator("form[action$='/correct'] button").click()
    expect(page.locator("html[data-ready] [data-correction]")).to_be_visible()
    assert not accessibility_violations(page)
    page.keyboard.press("1")
    page.locator("[data-correction] button").click()
    page.wait_for_url("**/submitted/")
    assert Submission.objects.get().finish_reason == "solution"
    assert Assignment.objects.get().reopened_at is None
    assert Judgment.objects.filter(turn__revision=2).count() == 0


def test_submission_is_edited_and_the_history_shows_it(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."])
    page = day.begin(visit(day.user))
    press(page, "33")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
    page.goto("/")
    assert not accessibility_violations(page)
    page.locator("form[action$='/correct'] button").click()
    expect(page.locator("html[data-ready] .step.is-now")).to_be_visible()
    submit = page.locator("#submit")
    expect(submit).to_have_attribute("data-state", "unchanged")
    page.wait_for_timeout(800)
    page.keyboard.press("Enter")
    expect(page.locator("#toast")).to_be_visible()
    press(page, "1z")
    expect(submit).to_have_attribute("data-state", "unchanged")
    page.keyboard.press("1")
    expect(submit).to_have_attribute("data-state", "first_error")
    page.keyboard.press("Enter")
    expect(page.locator("[data-page=history]")).to_be_visible()
    expect(page.locator("[data-result=found_error][data-steps='1']")).to_be_visible()
    assert not accessibility_violations(page)
    page.locator("tbody th a").click()
    expect(page.locator(".verdict .mark--neg")).to_have_count(1)
    assert not accessibility_violations(page)
    assert list(Submission.objects.order_by("revision").values_list("finish_reason", flat=True)) == [
        "solution",
        "found_error",
    ]
