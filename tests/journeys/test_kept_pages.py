"""A page that an earlier test used is as a new browser would show it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests import factories
from tests.journeys.conftest import Visit
from tests.journeys.kept_pages import KeptPages

pytestmark = pytest.mark.django_db(transaction=True)

STORE = """async () => {
  localStorage.setItem("a", "1");
  sessionStorage.setItem("a", "1");
  window.name = "a";
  await caches.open("a");
  await new Promise((resolve) => { indexedDB.open("a").onsuccess = resolve; });
}"""
STORED = """async () => [
  localStorage.length, sessionStorage.length, window.name, await caches.keys(), await indexedDB.databases(),
  innerWidth, matchMedia("(prefers-color-scheme: dark)").matches,
  matchMedia("(prefers-reduced-motion: reduce)").matches, matchMedia("(forced-colors: active)").matches,
]"""


@pytest.mark.parametrize("dark", [False, True])
def test_next_test_finds_a_page_without_traces_of_the_last_one(dark: bool, kept_pages: KeptPages, visit: Visit) -> None:
    page = visit(factories.make_user(), "/", dark=dark)
    page.evaluate(STORE)
    page.set_viewport_size({"width": 500, "height": 500})
    page.emulate_media(color_scheme="light" if dark else "dark", reduced_motion="reduce", forced_colors="active")
    assert kept_pages.end_test() == []
    again = visit(dark=dark)
    assert again is page
    assert again.context.cookies() == []
    again.goto("/")
    assert again.url.endswith("/login/?next=/")
    assert again.evaluate(STORED) == [0, 0, "", [], [], 1440, dark, False, False]


CHANGES: list[Callable[[Page], object]] = [
    lambda page: page.add_init_script("window.isChanged = true"),
    lambda page: page.clock.install(),
    lambda page: page.route("**/x", lambda route: route.abort()),
    lambda page: page.context.set_offline(True),
    lambda page: page.context.grant_permissions(["clipboard-read"]),
    lambda page: page.context.new_page(),
    lambda page: page.close(),
]


@pytest.mark.parametrize("change", CHANGES)
def test_changed_page_is_not_used_again(change: Callable[[Page], object], kept_pages: KeptPages, visit: Visit) -> None:
    page = visit()
    change(page)
    kept_pages.end_test()
    assert visit() is not page


def test_complaint_of_a_kept_page_counts_once(kept_pages: KeptPages, visit: Visit) -> None:
    page = visit(None, "/")
    page.evaluate("console.error('broken')")
    assert kept_pages.end_test() == ["broken"]
    assert visit() is page
    assert kept_pages.end_test() == []
