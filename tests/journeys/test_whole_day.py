"""Eight hours of one annotator in a minute: a lapsed lease, a lost network, a changed guideline, a paused project, a
reload and a second tab. Every label is stored as it was pressed, every minute is counted once, and the memory of the
tab stays flat.

`DAY_TRACES=500` rates that many traces in the eight hours."""

import datetime as dt
import os
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from labeling import queue
from labeling.models import Judgment, Project, Submission
from labeling.projects import lifecycle
from tests.journeys.conftest import PATIENCE, Visit
from tests.journeys.test_work import RaterDay, saved

pytestmark = pytest.mark.django_db(transaction=True)
TRACES = int(os.environ.get("DAY_TRACES", "40"))
WARM_UP = TRACES // 5  # traces, before anything but the first events happens
STEPS = 3
DAY = 8 * 3600  # seconds
NOTICED_AFTER = 0.05  # seconds
IDLE_AFTER = 30  # seconds, as in static/js/work/clock.js
KEYS = {1: "3", 0: "2", -1: "1"}

# The clocks of all tabs, which the test moves. Timers run as usual: requests and the browser's store take real time.
CLOCK = """
  const ahead = () => Number(localStorage.getItem("ahead") ?? 0);
  const monotonic = performance.now.bind(performance);
  performance.now = () => monotonic() + ahead();
  const RealDate = Date;
  globalThis.Date = class extends RealDate {
    constructor(...values) {
      super(...(values.length ? values : [RealDate.now() + ahead()]));
    }
    static now() {
      return RealDate.now() + ahead();
    }
  };
"""
SHOWN = """() => ({
  ready: document.documentElement.dataset.ready ?? "",
  isLit: document.querySelector(".step.is-now") !== null,
  labels: [...document.querySelectorAll(".rate input:checked")].map((input) => Number(input.value)),
})"""
SHOWS_TRACE = """(left) => document.querySelector(".step.is-now") !== null
  && ![left, "nothing", undefined].includes(document.documentElement.dataset.ready)"""
IS_LEFT = "(left) => document.documentElement.dataset.ready !== left"


class WorkingDay:
    """The annotator's page with a clock that the test moves, on the server too."""

    def __init__(self, day: RaterDay, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
        self.day, self.page, self.chance, self.ahead = day, page, random.Random(8), 0.0
        self.active = 0.0  # seconds that should be counted
        self.between = 0.0  # real seconds between a submit and the next trace, which do not count
        self.is_touched = False
        self.labels: dict[int, list[int]] = {}
        real = timezone.now
        monkeypatch.setattr("django.utils.timezone.now", lambda: real() + dt.timedelta(seconds=self.ahead))
        page.context.add_init_script(CLOCK)

    def pass_time(self, seconds: float) -> None:
        """Let time pass for browser and server. After a key, half a minute of it counts as work."""
        if self.is_touched:
            self.active += min(seconds, IDLE_AFTER)
            self.is_touched = False
        self.ahead += seconds
        self.page.evaluate("(ahead) => localStorage.setItem('ahead', ahead)", self.ahead * 1000)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.is_touched = True

    def shown(self) -> Any:
        return self.page.evaluate(SHOWN)

    def open(self) -> None:
        """Open the work page. Time counts again from the first key on."""
        self.day.begin(self.page)
        self.is_touched = False

    def wait_for_trace(self, other_than: str = "") -> str:
        self.page.wait_for_function(SHOWS_TRACE, arg=other_than, timeout=PATIENCE * 1000)
        return str(self.shown()["ready"])

    def rate(self, gap: float, *, steps: int = STEPS) -> str:
        """Rate the next unrated steps of the trace that is shown."""
        began = time.monotonic()
        shown = self.wait_for_trace()
        self.between += time.monotonic() - began
        labels = self.labels.setdefault(int(shown), [])
        for _ in range(steps):
            labels.append(self.chance.choice([1, 0, -1]))
            self.pass_time(gap)
            self.press(KEYS[labels[-1]])
        now = self.shown()
        assert (now["ready"], now["labels"]) == (shown, labels)
        return shown

    def submit(self, shown: str, gap: float) -> None:
        self.pass_time(gap)
        self.press("Enter")
        began = time.monotonic()
        self.page.wait_for_function(IS_LEFT, arg=shown, timeout=PATIENCE * 1000)
        self.between += time.monotonic() - began

    def wait_for_nothing(self) -> None:
        """No time counts while there is nothing to rate."""
        expect(self.page.locator("html[data-ready=nothing]")).to_be_attached()
        self.is_touched = False

    def memory(self) -> tuple[float, float]:
        """Return heap and DOM nodes after garbage collection."""
        saved(self.page)
        line = self.page.context.new_cdp_session(self.page)
        line.send("Performance.enable")
        for _ in range(2):
            line.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in line.send("Performance.getMetrics")["metrics"]}
        line.detach()
        return metrics["JSHeapUsedSize"], metrics["Nodes"]


def test_a_day_of_an_annotator(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[list[str | list[str]]] = [["One.", "Two.", "Three."] for _ in range(TRACES + 5)]
    day = RaterDay(*traces, protocol="every_step", lease_seconds=1800)
    work = WorkingDay(day, visit(day.user), monkeypatch)
    work.open()
    began, gap = time.monotonic(), DAY / TRACES / (STEPS + 1)
    # What loads another document comes first, because memory is compared within one. It is compared from the middle of
    # the day on: before, the page grows once by what it loads or compiles late.
    numbers = [1, 2, *range(WARM_UP + 2, TRACES, TRACES // 6)]
    events = dict(zip(numbers, EVENTS, strict=False))
    assert len(events) == len(EVENTS)
    before = (0.0, 0.0)
    for number in range(TRACES):
        if number in events:
            events[number](work, gap)
        else:
            work.submit(work.rate(gap), gap)
        if number == TRACES // 2:
            before = work.memory()
    after = work.memory()
    took = time.monotonic() - began
    assert len(work.labels) >= TRACES
    assert stored_labels() == work.labels
    counted = sum(ms or 0 for ms in Submission.objects.values_list("total_ms", flat=True)) / 1000
    # Real seconds, some of which count. The test notices a trace a moment after it appeared.
    inside = took - work.between + NOTICED_AFTER * len(work.labels)
    assert -work.between - 1 <= counted - work.active <= inside, (counted, work.active, work.between, inside)
    growth = [now / then for now, then in zip(after, before, strict=True)]
    assert max(growth) <= 1.1, (before, after)


def stored_labels() -> dict[int, list[int]]:
    rows = Judgment.objects.filter(turn__assignment__state="submitted").order_by("turn__step__position")
    labels: dict[int, list[int]] = {}
    for assignment, rating in rows.values_list("turn__assignment", "rating"):
        labels.setdefault(assignment, []).append(rating or 0)
    return labels


def lapsed(work: WorkingDay, gap: float) -> None:
    """Lunch, in the middle of a trace: it goes back to the queue, and is finished all the same."""
    shown = work.rate(gap)
    work.pass_time(3600)
    queue.lapse_expired_leases(now=timezone.now())
    work.submit(shown, 0)


def offline(work: WorkingDay, gap: float) -> None:
    """Work without a network until no trace is left that was fetched before."""
    shown = work.rate(gap)
    saved(work.page)
    work.page.wait_for_timeout(500)  # the next trace is fetched
    work.page.context.set_offline(True)
    work.submit(shown, gap)
    if work.shown()["ready"] != "nothing":
        work.submit(work.rate(gap), gap)
    work.wait_for_nothing()
    work.pass_time(600)
    work.page.context.set_offline(False)
    work.wait_for_trace()


def guideline(work: WorkingDay, gap: float) -> None:
    """After the trace that is open, the new guideline must be read."""
    lifecycle.publish_guideline(project=work.day.project, body="Look twice.", by=None, now=timezone.now())
    work.rate(gap)
    work.pass_time(gap)
    work.press("Enter")
    work.page.wait_for_url("**/enter/**")
    work.page.locator("form[action$='/guideline'] [type=submit]").click()
    work.page.wait_for_load_state()
    work.open()


def paused(work: WorkingDay, gap: float) -> None:
    """What was begun is finished, and nothing new is given."""
    Project.objects.update(state="paused")
    work.submit(work.rate(gap), gap)
    if work.shown()["ready"] != "nothing":  # fetched before
        work.submit(work.rate(gap), gap)
    work.wait_for_nothing()
    saved(work.page)  # each answer makes the page look for a trace
    work.pass_time(1200)
    Project.objects.update(state="open")
    work.page.locator(".nothing button").click()
    work.is_touched = True
    work.wait_for_trace()


def reload(work: WorkingDay, gap: float) -> None:
    shown = work.rate(gap, steps=1)
    saved(work.page)
    work.open()
    assert work.rate(gap, steps=STEPS - 1) == shown
    work.submit(shown, gap)


def second_tab(work: WorkingDay, gap: float) -> None:
    """The same trace in two tabs: the time counts in the one that is used."""
    first, shown = work.page, work.rate(gap, steps=1)
    saved(first)
    work.page = first.context.new_page()
    work.open()
    assert work.rate(gap, steps=STEPS - 1) == shown
    work.submit(shown, gap)
    saved(work.page)
    work.page.close()
    work.page = first
    first.locator("[data-notice=submitted] button").last.click()
    work.is_touched = True
    work.wait_for_trace(shown)


EVENTS: tuple[Callable[[WorkingDay, float], None], ...] = (guideline, reload, lapsed, offline, paused, second_tab)
