"""The requests of the work page, which `bench.page_cycle` sends: they are recorded here, from the page itself.

`RECORD_REQUESTS=1` writes the file again after the page was changed."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from labeling.models import Submission
from tests.journeys.conftest import Visit
from tests.journeys.test_closed_page import KEPT
from tests.journeys.test_work import RaterDay, eventually

pytestmark = pytest.mark.django_db(transaction=True)

FILE = Path(__file__).resolve().parents[2] / "bench" / "page_requests.json"
STEPS = 12
TRACES = 5  # the first two include what a page loads once
PACES = {"person": 2500, "hurried": 70}  # milliseconds between two keys


class WatchedPage:
    """A page whose clock stands still unless it is moved, and the requests that it sends."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.keys = 0  # pressed in this trace so far
        self.sent: list[dict[str, Any]] = []
        self.unanswered: set[Request] = set()
        page.on("request", self._note)
        page.on("requestfinished", lambda request: self.unanswered.discard(request))
        page.on("requestfailed", lambda request: self.unanswered.discard(request))

    def _note(self, request: Request) -> None:
        self.unanswered.add(request)
        self.sent.append({"keys": self.keys, **describe(request)})

    def wait(self, milliseconds: int) -> None:
        """Move the clock. Requests take no time on it."""
        self.page.clock.run_for(milliseconds)
        self.settle()

    def press(self, key: str) -> None:
        self.keys += 1
        self.page.keyboard.press(key)
        self.settle()

    def settle(self) -> None:
        """Wait until the page has stored what was typed, and has the answers to its requests."""
        for _ in range(4):
            self.page.evaluate(KEPT)
            eventually(self.page, lambda: not self.unanswered)

    def rate_trace(self, pause: int) -> list[dict[str, Any]]:
        """Rate all steps and submit, and return what the page has sent since the last trace."""
        self.keys = 0
        shown = self.page.locator("html").get_attribute("data-ready")
        for _ in range(STEPS):
            self.wait(pause)
            self.press("3")
        self.wait(pause)
        n_submitted = Submission.objects.count()
        self.press("Enter")
        expect(self.page.locator(f"html:not([data-ready='{shown}']) .step.is-now")).to_be_visible()
        self.wait(1000)  # the least time between two endings
        eventually(self.page, lambda: Submission.objects.count() == n_submitted + 1)
        self.settle()
        cycle, self.sent = self.sent, []
        return cycle


@pytest.mark.parametrize("pace", PACES)
def test_page_sends_the_recorded_requests(pace: str, visit: Visit) -> None:
    steps: list[str | list[str]] = [f"Step {number}." for number in range(STEPS)]
    day = RaterDay(*[steps] * (TRACES + 2))
    page = visit(day.user)
    page.clock.install()
    day.begin(page)
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
    watched = WatchedPage(page)
    watched.wait(21_000)  # until the parts of the page that load late are there
    cycles = [watched.rate_trace(PACES[pace]) for _ in range(TRACES)]
    found = {"steps": STEPS, "milliseconds_per_key": PACES[pace], "traces": cycles[2:]}
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
    if os.environ.get("RECORD_REQUESTS"):
        FILE.write_text(json.dumps({**recorded, pace: found}, indent=1) + "\n")
    else:
        assert found == recorded[pace]


def describe(request: Request) -> dict[str, Any]:
    """Describe a request without the numbers of traces."""
    path = re.sub(r"^https?://[^/]+", "", request.url)
    path = re.sub(r"(?<=^/work/)\d+(?=/)", "{assignment}", re.sub(r"(?<=^/work/)[^/]+(?=/claim$)", "{slug}", path))
    body = json.loads(request.post_data or "{}") if request.method == "POST" else {}
    described: dict[str, Any] = {"method": request.method, "path": path}
    if "writes" in body:
        described["writes"] = len(body["writes"])
    return described | {wish: True for wish in ("next", "opens") if wish in body}
