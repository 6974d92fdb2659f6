"""Raters who press keys on the work page in a real browser and record their ratings, despite injected faults."""

import contextlib
import functools
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from accounts.models import User
from supervisor import paths
from tests import chromium, servers

KEYS = {-1: "1", 0: "2", 1: "3"}
COLLECT = "import django; django.setup(); from supervisor.prepare import collect_static_files as c; c()"


class KillableServer:
    """A web server on the test database that can be killed and restarted at the same address."""

    def __init__(self, folder: Path, broker: str) -> None:
        self.port, self.log = paths.find_free_port(0), folder / "web.log"
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {
            **servers.process_environment(folder, broker=broker),
            "SECRET_KEY": settings.SECRET_KEY,
            "STEPMARK_ORIGIN": self.url,
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        collect_static_files()
        self.start()

    def start(self) -> None:
        self.server = servers.start_web_server(bind=f"127.0.0.1:{self.port}", env=self.env, log=self.log)

    def kill(self) -> None:
        self.server.kill()


@functools.cache
def collect_static_files() -> None:
    """Collect the static files of the checkout, as `./run` does. This process has none: see `tests.conftest`."""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    subprocess.run([sys.executable, "-c", COLLECT], env=env, cwd=servers.ROOT, check=True)


@contextlib.contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run Chromium without pytest's plugin, which is not loaded for fault tests."""
    program = chromium.require_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=chromium.ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def logged_in_context(browser: Browser, server: KillableServer, user: User) -> BrowserContext:
    client = Client()
    client.force_login(user)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context = browser.new_context(base_url=server.url)
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": server.url}])
    return context


class BrowserRater:
    """One person on one page. `ratings` has their last rating of each step, `history` all of them."""

    def __init__(self, context: BrowserContext, slug: str, inject_faults: "FaultInjector") -> None:
        self.context, self.slug, self.inject_faults = context, slug, inject_faults
        self.ratings: dict[tuple[int, int], int | None] = {}
        self.history: list[tuple[int, int, int | None]] = []
        self.page = context.new_page()
        self.open()

    def open(self) -> None:
        for _ in range(40):
            with contextlib.suppress(Exception):  # no server is running: load the page again
                self.page.goto(f"/work/{self.slug}/", timeout=5_000)
                break
            self.page.wait_for_timeout(250)
        self.ready()

    def ready(self) -> int:
        """Wait until the page shows an assignment, and return its id."""
        expect(self.page.locator("html[data-ready] .step.is-now")).to_be_visible(timeout=30_000)
        return int(self.page.locator("html").get_attribute("data-ready") or 0)

    def close_the_tab(self) -> None:
        self.page.close(run_before_unload=False)
        self.page = self.context.new_page()
        self.open()

    def rate(self, assignment: int, step: int, rating: int) -> None:
        self._press(assignment, step, rating, KEYS[rating])

    def undo(self, assignment: int, step: int, former: int | None) -> None:
        self._press(assignment, step, former, "z")

    def _press(self, assignment: int, step: int, rating: int | None, key: str) -> None:
        self.inject_faults()
        self.page.keyboard.press(key)
        self.ratings[assignment, step] = rating
        self.history.append((assignment, step, rating))

    def submit(self) -> None:
        """Submit and wait for the next trace. If it was not prefetched and cannot be fetched, end the fault first."""
        shown = self.page.locator("html").get_attribute("data-ready")  # with all steps rated, none may be current
        self.page.keyboard.press("Enter")
        following = self.page.locator(f"html:not([data-ready='{shown}']) .step.is-now")
        with contextlib.suppress(AssertionError):
            expect(following).to_be_visible(timeout=2_000)
            return
        self.inject_faults.end_faults()
        expect(following).to_be_visible(timeout=30_000)

    def wait_until_saved(self) -> None:
        expect(self.page.locator("#save[data-state=saved]")).to_be_visible(timeout=45_000)


class FaultInjector:
    """Kills the server and disconnects the network after seeded random numbers of key presses, so that a run can be
    repeated."""

    def __init__(self, server: KillableServer, chance: random.Random, *, every: int) -> None:
        self.server, self.chance, self.every = server, chance, every
        self.contexts: list[BrowserContext] = []
        self.kills = self.cuts = 0
        self.until_next, self.end_fault = every // 2, self._nothing

    def __call__(self) -> None:
        self.until_next -= 1
        if self.until_next > 0:
            return
        end_fault, self.end_fault = self.end_fault, self._nothing
        if end_fault == self._nothing:
            self.end_fault = self.chance.choice([self._kill, self._cut])()
            self.until_next = self.chance.randint(3, self.every)
        else:
            end_fault()
            self.until_next = self.chance.randint(self.every // 2, self.every)

    def end_faults(self) -> None:
        if self.end_fault == self._nothing:
            return
        self.end_fault()
        self.end_fault = self._nothing
        self.until_next = self.every

    def _kill(self) -> Callable[[], None]:
        self.kills += 1
        self.server.kill()
        return self.server.start

    def _cut(self) -> Callable[[], None]:
        self.cuts += 1
        context = self.chance.choice(self.contexts)
        context.set_offline(True)
        return lambda: context.set_offline(False)

    def _nothing(self) -> None:
        pass
