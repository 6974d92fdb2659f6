"""The questions about an error on the work page: by keyboard, offline, after a reload."""

import pytest
from playwright.sync_api import Page, expect

from labeling.models import Judgment, Project, RatingEdit, Submission
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, expect_waiting, press, saved

pytestmark = pytest.mark.django_db(transaction=True)


def checked(page: Page) -> list[str | None]:
    return [each.get_attribute("value") for each in page.locator("[name^=severity]:checked").all()]


def test_severity_by_keyboard_alone(visit: Visit) -> None:
    day = RaterDay(["One.", "Two.", "Three."], protocol="every_step", asks_severity=True)
    page = day.begin(visit(day.user))
    press(page, "1w")
    page.keyboard.press("Space")  # the first one, low
    page.keyboard.press("ArrowRight")
    assert checked(page) == ["2"]
    page.keyboard.press("Escape")
    press(page, "z")
    assert checked(page) == ["1"]
    assert not accessibility_violations(page)
    saved(page)
    page.context.set_offline(True)
    page.locator("[name^=severity][value='3']").check()
    expect_waiting(page, 1)
    page.context.set_offline(False)
    saved(page)
    page.reload()
    expect(page.locator("html[data-ready] .step.is-now")).to_have_attribute("data-stop", "1.0")
    assert checked(page) == ["3"]
    page.locator("[data-stop='0.0'] .step__no").click()
    press(page, "3")
    assert checked(page) == []
    page.locator("[data-stop='0.0'] .step__no").click()
    press(page, "1")  # the answer comes back with the negative rating
    assert checked(page) == ["3"]
    press(page, "33")
    page.keyboard.press("Enter")
    eventually(page, Submission.objects.exists)
    rows = Judgment.objects.order_by("turn__step__position").values_list("rating", "severity")
    assert list(rows) == [(-1, 3), (1, None), (1, None)]
    assert RatingEdit.objects.filter(severity=2).exists()


KINDS = [[f"kind-{number}", f"Kind {number}"] for number in range(1, 13)]
RULES = {"negative": "Wrong.", "neutral": "Idle.", "positive": "Right.", "kinds": KINDS}


def test_twelve_kinds_and_severity_by_keyboard_with_few_keys(visit: Visit) -> None:
    steps: list[str | list[str]] = [f"Step {number}." for number in range(12)]
    asks = {"asks_error_category": True, "asks_severity": True, "rating_rules": RULES}
    day = RaterDay(steps, protocol="every_step", **asks)
    page = day.begin(visit(day.user))
    keys = [*"33331", *"w72", *"3333333", "Enter"]  # the error is of the seventh kind and of medium severity
    for key in keys:
        page.keyboard.press(key)
    eventually(page, Submission.objects.exists)
    rows = Judgment.objects.order_by("turn__step__position").values_list("rating", "category", "severity")
    assert list(rows)[3:6] == [(1, "", None), (-1, "kind-7", 2), (1, "", None)]
    assert len(keys) <= 1.25 * (len(steps) + 1)


def test_several_kinds_by_keyboard(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], protocol="every_step", asks_error_category=True, takes_several_kinds=True)
    page = day.begin(visit(day.user))
    press(page, "1w")
    press(page, "231")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("Escape")
    assert not accessibility_violations(page)
    chosen = [each.get_attribute("value") for each in page.locator("[name^=category]:checked").all()]
    assert len(chosen) == 2
    press(page, "z")
    assert page.locator("[name^=category]:checked").count() == 3
    press(page, "j3")
    page.keyboard.press("Enter")
    eventually(page, Submission.objects.exists)
    category = Judgment.objects.get(turn__step__position=0).category
    assert category.split() == ["reasoning", "calculation", "misread"]


def test_kind_that_the_project_no_longer_has_is_kept(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], protocol="every_step", asks_error_category=True, takes_several_kinds=True)
    page = day.begin(visit(day.user))
    press(page, "1w1")
    saved(page)
    Project.objects.update(rating_rules=RULES)
    page.reload()
    expect(page.locator("html[data-ready] .step.is-now")).to_be_visible()
    press(page, "3w2")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    eventually(page, Submission.objects.exists)
    assert Judgment.objects.get(turn__step__position=0).category == "kind-2 reasoning"


def test_required_kind_is_asked_for_before_the_submit(visit: Visit) -> None:
    asks = {"asks_error_category": True, "needs_error_category": True}
    day = RaterDay(["One.", "Two."], protocol="every_step", **asks)
    page = day.begin(visit(day.user))
    press(page, "13")
    expect(page.locator("#submit")).to_have_attribute("data-state", "explain_error")
    page.keyboard.press("Enter")
    expect(page.locator(".errorbox [name^=category]").first).to_be_focused()
    press(page, "2")
    expect(page.locator("#submit")).to_have_attribute("data-state", "all_rated")
    page.keyboard.press("Enter")
    eventually(page, Submission.objects.exists)
    assert Judgment.objects.get(turn__step__position=0).category == "calculation"
