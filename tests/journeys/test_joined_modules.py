"""The work page with its modules joined, as they are served. The other journeys load each module by itself."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from config.static_bundles import build_bundles
from config.static_files import read_source
from tests.journeys.conftest import Visit
from tests.journeys.test_work import RaterDay, press, ratings, saved

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "The **answer** follows.\n\n" + "\n\n".join(f"Paragraph {n} of a long step." for n in range(400))


def serve_bundles(page: Page) -> list[str]:
    """Answer requests for modules of the work page with bundles. Return the names of those that were requested."""
    texts = dict(build_bundles(read_source))
    requested: list[str] = []

    def answer(route: Route) -> Any:
        name = route.request.url.partition("/static/")[2].replace("work/work.js", "work/work.bundle.js")
        if name not in texts:
            return route.continue_()  # preloaded because of this page's markup, and not used
        requested.append(name)
        return route.fulfill(body=texts[name], content_type="text/javascript")

    page.route(re.compile("/static/js/work/"), answer)
    return requested


def test_joined_modules_rate_and_read_also_offline(visit: Visit) -> None:
    day = RaterDay(["One.", LONG, "Three."], protocol="every_step")
    page = visit(day.user)
    requested = serve_bundles(page)
    with page.expect_response(re.compile(r"lazy/panel\.bundle\.js")):  # the last module loaded in advance
        day.begin(page)
    expect(page.locator(".folded b")).to_have_count(1)  # Markdown and folds
    press(page, "3")
    saved(page)
    page.context.set_offline(True)
    press(page, "f")
    expect(page.locator("#find")).to_be_visible()
    page.keyboard.press("Escape")
    press(page, "r")
    expect(page.locator("#toast")).to_be_visible()  # the guideline itself is not here
    press(page, "31")
    page.context.set_offline(False)
    saved(page)
    assert ratings() == [1, 1, -1]
    assert len(set(requested)) == len(requested)
