"""Fixtures of the journeys: pages in a real browser."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from tests import chromium
from tests.journeys.kept_pages import KeptPages, PageForm

AXE_SCRIPT = (Path(__file__).parent / "vendor" / "axe-core-4.14.0" / "axe.min.js").read_text()
# Of everything that axe-core found, only this is sent: to send what passed takes as long as to find it.
RUN_AXE = """async (options) => (await axe.run(options)).violations.flatMap(
  ({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 120)}`))"""
# Playwright runs an event loop in this thread, which Django would mistake for asynchronous code that must not query.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
PATIENCE = 30  # seconds; long for busy machines
expect.set_options(timeout=PATIENCE * 1000)
# CPU throttling of the browser, to find problems that a fast machine hides.
SLOWER = float(os.environ.get("STEPMARK_SLOWER", "1"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.journey)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    return {
        **browser_type_launch_args,
        "executable_path": chromium.require_chromium(),
        "args": chromium.ARGUMENTS,
    }


@pytest.fixture
def origin(live_server: LiveServer, settings: Any) -> str:
    settings.ORIGIN = live_server.url
    return str(live_server.url)


# The browser also reports expected errors (422 for a form, 410 for a used link) and networks that a test has cut.
EXPECTED_COMPLAINTS = (
    "Failed to load resource: the server responded",
    "Failed to load resource: net::ERR_INTERNET_DISCONNECTED",
)

Visit = Callable[..., Page]

# Screen sizes; a page in each of them, light and dark: a desktop, a phone, and a phone in landscape or a zoomed window.
FORMS = ((1440, 900), (390, 844), (720, 450))


@pytest.fixture(scope="session")
def kept_pages(browser: Browser, django_db_setup: None, live_server: LiveServer) -> Iterator[KeptPages]:
    """Pages are closed before the server and the database, which their connections would hold open."""
    pages = KeptPages(browser, live_server.url, _slow_down)
    with pages.noticing_changes():
        yield pages
    pages.close()


@pytest.fixture
def visit(kept_pages: KeptPages, origin: str) -> Iterator[Visit]:
    """Open pages in separate browser contexts, at an address, and logged in if a user is given.

    Errors and warnings in the browser's console (a refused script, a missing file) fail the test."""

    def open_page(
        user: User | None = None,
        at: str = "",
        *,
        width: int = 1440,
        height: int = 0,
        dark: bool = False,
        **options: Any,
    ) -> Page:
        form = PageForm(width, height or (900 if width > 700 else 844), dark, options)
        page = kept_pages.open_page(form)
        if user is not None:
            name, key = settings.SESSION_COOKIE_NAME, _log_in(user)
            page.context.add_cookies([{"name": name, "value": key, "url": origin}])
        if at:
            page.goto(at)
        return page

    yield open_page
    complaints = kept_pages.end_test()
    assert not [each for each in complaints if not each.startswith(EXPECTED_COMPLAINTS)]


def _log_in(user: User) -> str:
    """Return the key of a new session. Only the tests of the login go through its pages."""
    client = Client()
    client.force_login(user)
    return str(client.session.session_key)


def _slow_down(page: Page) -> None:
    if SLOWER > 1:
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})


def accessibility_violations(page: Page, *rules: str) -> list[str]:
    """Return axe-core's violations of WCAG 2.2 A and AA, or of the given rules.

    The script is evaluated, because the content security policy blocks script tags."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": tags}
    found: list[str] = page.evaluate(RUN_AXE, {"runOnly": only, "resultTypes": ["violations"]})
    return found


def violations_in_both_themes(page: Page) -> list[str]:
    """Return the violations on a page in the light theme, and those of its colors in the dark one: nothing else
    differs between themes. The page stays in the dark one."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")  # colors change at once
    found = accessibility_violations(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    expect(page.locator("html")).to_have_css("background-color", "rgb(17, 19, 22)")
    return found + accessibility_violations(page, "color-contrast", "link-in-text-block")
