"""Eight hours of one annotator, with fast clocks: a lapsed lease, a lost network, a changed guideline, a paused
project, a second tab and a reload. Every label is stored, every minute is counted once, and the memory of the tab stays
flat.

`DAY_TRACES=500` rates that many traces in the eight hours."""

import datetime as dt
import os
import time
from collections.abc import Callable

import pytest
from django.utils import timezone
from playwright.sync_api import Page

from labeling import queue
from labeling.models import Judgment, Project, Submission
from labeling.projects import lifecycle
from tests.journeys.conftest import Visit
from tests.journeys.test_work import RaterDay

pytestmark = pytest.mark.django_db(transaction=True)
TRACES = int(os.environ.get("DAY_TRACES", "14"))
WARM_UP = TRACES // 3  # traces, before memory is measured for the first time
STEPS = 3
DAY = 8 * 3600  # seconds
IDLE_AFTER = 30  # seconds, as in static/js/work/clock.js
RATINGS = (1, 0, -1)
KEYS = {1: "3", 0: "2", -1: "1"}


class WorkingDay:
    """The annotator's page with a clock that the test moves, on the server too."""

    def __init__(self, day: RaterDay, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
        self.day, self.page, self.ahead = day, page, 0.0
        self.active = 0.0  # seconds that should be counted
        self.waited = 0.0
        self.is_touched = False
        self.labels: dict[int, list[int]] = {}
        real = timezone.now
        monkeypatch.setattr("django.utils.timezone.now", lambda: real() + dt.timedelta(seconds=self.ahead))
        page.clock.install()

    def pass_time(self, seconds: float) -> None:
        """Let time pass for browser and server. After a key, half a minute of it counts as work."""
        if self.is_touched:
            self.active += min(seconds, IDLE_AFTER)
            self.is_touched = False
        self.ahead += seconds
        if seconds > 60:
            self.page.clock.fast_forward(int((seconds - 60) * 1000))
        self.page.clock.run_for(int(min(seconds, 60) * 1000))

    def tick(self, ms: int = 20) -> None:
        """Wait for an answer, which takes real time."""
        self.page.wait_for_timeout(20)
        self.page.clock.run_for(ms)
        self.waited += ms / 1000

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.is_touched = True

    def shown(self) -> str:
        return str(self.page.evaluate("document.documentElement.dataset.ready") or "")

    def wait_for(self, condition: str, argument: str = "") -> None:
        """Wait for the page, which needs its clock to move, for what the server or the database answers."""
        for number in range(600):
            if self.page.evaluate(condition, argument):
                return
            self.tick(20 if number < 100 else 500)  # the page repeats a failed request after half a minute at most
        state = self.page.evaluate(
            "[{...document.documentElement.dataset}, {...document.querySelector('#save').dataset}]"
        )
        raise AssertionError((condition, self.page.url, state))

    def wait_for_trace(self, other_than: str = "") -> str:
        self.wait_for(
            "(left) => ![left, 'nothing', undefined].includes(document.documentElement.dataset.ready)"
            " && document.querySelector('.step.is-now') !== null",
            other_than,
        )
        return self.shown()

    def rate(self, gap: float) -> str:
        shown = self.wait_for_trace()
        for rating in RATINGS:
            self.pass_time(gap)
            self.press(KEYS[rating])
        self.labels[int(shown)] = list(RATINGS)
        self.pass_time(gap)
        return shown

    def submit(self, shown: str) -> None:
        self.press("Enter")
        self.wait_for("(left) => document.documentElement.dataset.ready !== left", shown)

    def memory(self) -> tuple[float, float]:
        """Return heap and DOM nodes after garbage collection."""
        line = self.page.context.new_cdp_session(self.page)
        line.send("Performance.enable")
        for _ in range(2):
            line.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in line.send("Performance.getMetrics")["metrics"]}
        line.detach()
        return metrics["JSHeapUsedSize"], metrics["Nodes"]


def test_a_day_of_an_annotator(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[list[str | list[str]]] = [["One.", "Two.", "Three."] for _ in range(TRACES + 3)]
    day = RaterDay(*traces, protocol="every_step", lease_seconds=1800)
    work = WorkingDay(day, visit(day.user), monkeypatch)
    began, gap = time.monotonic(), DAY / TRACES / (STEPS + 1)
    day.begin(work.page)
    before = (0.0, 0.0)
    events: tuple[Callable[[WorkingDay, float], None], ...] = (lapsed, offline, guideline, paused, reload, second_tab)
    cases = {n * TRACES // 8: event for n, event in enumerate(events, start=1)}
    for number in range(TRACES):
        if case := cases.get(number):
            case(work, gap)
        else:
            work.submit(work.rate(gap))
        if number == WARM_UP:
            before = work.memory()
    work.wait_for("document.querySelector('#save').dataset.state === 'saved'")
    after = work.memory()
    assert stored_labels() == work.labels
    assert len(work.labels) >= TRACES
    counted = sum(ms or 0 for ms in Submission.objects.values_list("total_ms", flat=True)) / 1000
    slack = work.waited + time.monotonic() - began
    # No time counts between a submit and the next trace.
    assert abs(counted - work.active) <= slack, (counted, work.active, work.waited)
    growth = [now / then for now, then in zip(after, before, strict=True)]
    assert max(growth) <= 1.2, (before, after)


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
    work.submit(shown)


def offline(work: WorkingDay, gap: float) -> None:
    """Work without a network until no trace is left that was fetched before."""
    shown = work.rate(20)
    work.page.context.set_offline(True)
    work.submit(shown)
    if work.shown() != "nothing":
        work.submit(work.rate(20))
    work.wait_for("document.documentElement.dataset.ready === 'nothing'")
    work.is_touched = False  # nothing to rate: no time counts
    work.pass_time(600)
    work.page.context.set_offline(False)
    work.wait_for_trace()


def guideline(work: WorkingDay, gap: float) -> None:
    """After the trace that is open, the new guideline must be read."""
    lifecycle.publish_guideline(project=work.day.project, body="Look twice.", by=None, now=timezone.now())
    work.rate(gap)
    work.press("Enter")
    while "/enter/" not in work.page.url:
        work.tick()
    work.page.locator("form[action$='/guideline'] [type=submit]").click()
    work.page.wait_for_load_state()
    work.day.begin(work.page)
    work.is_touched = False
    work.wait_for_trace()


def paused(work: WorkingDay, gap: float) -> None:
    """What was begun is finished, and nothing new is given."""
    Project.objects.update(state="paused")
    work.submit(work.rate(gap))
    if work.shown() != "nothing":  # fetched before
        work.submit(work.rate(gap))
    work.wait_for("document.documentElement.dataset.ready === 'nothing'")
    work.is_touched = False
    work.pass_time(1200)
    Project.objects.update(state="open")
    work.page.locator(".nothing button").click()
    work.wait_for_trace()


def reload(work: WorkingDay, gap: float) -> None:
    shown = work.wait_for_trace()
    work.pass_time(gap)
    work.press(KEYS[RATINGS[0]])
    work.wait_for("document.querySelector('#save').dataset.state === 'saved'")
    work.page.reload()
    work.is_touched = False
    assert work.wait_for_trace() == shown
    for rating in RATINGS[1:]:
        work.pass_time(gap)
        work.press(KEYS[rating])
    work.labels[int(shown)] = list(RATINGS)
    work.pass_time(gap)
    work.submit(shown)


def second_tab(work: WorkingDay, gap: float) -> None:
    """The same trace in two tabs: the time counts in the one that is used."""
    first, shown = work.page, work.wait_for_trace()
    work.pass_time(gap)
    work.press(KEYS[RATINGS[0]])
    work.wait_for("document.querySelector('#save').dataset.state === 'saved'")
    work.page = first.context.new_page()
    work.is_touched = False
    work.day.begin(work.page)
    for rating in RATINGS[1:]:
        work.pass_time(gap)
        work.press(KEYS[rating])
    work.labels[int(shown)] = list(RATINGS)
    work.pass_time(gap)
    work.submit(shown)
    work.wait_for("document.querySelector('#save').dataset.state === 'saved'")
    work.page.close()
    work.page, work.is_touched = first, False
    work.wait_for("document.querySelector('[data-notice=submitted]') !== null")
    first.locator("[data-notice=submitted] button").last.click()
    work.wait_for_trace(shown)
