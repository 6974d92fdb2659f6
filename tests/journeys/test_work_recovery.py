"""The work page of a project that asks where a trace recovers from an error: by keyboard, offline, after a reload."""

import pytest
from playwright.sync_api import Page, expect

from labeling.models import Judgment, RatingEdit, Submission
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, expect_waiting, press, saved

pytestmark = pytest.mark.django_db(transaction=True)

STEPS: list[str | list[str]] = [f"Step {number}." for number in range(6)]


def shown(page: Page) -> list[str | None]:
    """Return the mark of each step; "none" if no error is before it."""
    return [row.get_attribute("data-link") for row in page.locator(".step[data-stop]").all()]


def stored() -> list[tuple[int | None, str]]:
    rows = Judgment.objects.order_by("turn__step__position")
    return list(rows.values_list("rating", "error_link"))


def test_recovery_is_marked_with_one_key_and_nothing_is_lost(visit: Visit) -> None:
    day = RaterDay(STEPS, ["Next."], protocol="recovery")
    page = day.begin(visit(day.user))
    press(page, "m")  # nothing to recover from
    press(page, "31m")
    assert shown(page) == ["none", "none", "", "", "", ""]
    press(page, "3m")
    assert shown(page) == ["none", "none", "recovers", "none", "none", "none"]
    press(page, "m")
    assert shown(page) == ["none", "none", "independent", "", "", ""]
    assert not accessibility_violations(page)
    press(page, "z")
    assert shown(page)[2] == "recovers"
    press(page, "z")
    expect(page.locator(".step.is-now")).to_have_attribute("data-stop", "2.0")
    assert shown(page)[2] == ""
    saved(page)
    page.context.set_offline(True)
    press(page, "3")
    press(page, "2m")
    expect_waiting(page, 3)
    page.context.set_offline(False)
    saved(page)
    page.reload()
    expect(page.locator("html[data-ready] .step.is-now")).to_have_attribute("data-stop", "4.0")
    assert shown(page) == ["none", "none", "", "recovers", "none", "none"]
    press(page, "33")
    page.locator(".step__link:visible").first.click()  # the mouse does the same as the key
    assert shown(page)[2] == "recovers"
    page.keyboard.press("Enter")
    eventually(page, Submission.objects.exists)
    assert Submission.objects.get().protocol == "recovery"
    assert stored() == [(1, ""), (-1, ""), (1, "recovers"), (0, "recovers"), (1, ""), (1, "")]
    assert RatingEdit.objects.filter(error_link="independent").exists()
