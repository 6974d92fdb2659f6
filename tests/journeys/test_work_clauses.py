"""Clauses of the guideline on the work page: cited by one or two keys, searched as one types, removed, and undone."""

from playwright.sync_api import Page, expect

from labeling.models import Judgment, Submission
from labeling.projects import lifecycle
from tests import factories
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, press, pytestmark, saved  # noqa: F401  the mark

POLICY = "# Policy\n\n## Refunds\n\nWithin 30 days.\n\n### Faulty goods\n\nAsk for a photo.\n\n## Credit\n\nNo cash.\n"

FIND = """async ([clauses, typed]) => {
  const { findClauses, findByNumber } = await import('/static/js/work/clauses.js');
  return [findClauses(clauses, typed).map(({ code }) => code), findByNumber(clauses, typed)?.code ?? null];
}"""


def begin(visit: Visit, rule: str, *steps: str) -> Page:
    day = RaterDay(list(steps), protocol="every_step", asks_clauses=rule)
    publish_policy(day)
    return day.begin(visit(day.user))


def publish_policy(day: RaterDay) -> None:
    """Give the project a guideline with clauses, which its raters have read."""
    guideline = lifecycle.publish_guideline(project=day.project, body=POLICY, by=None, now=factories.NOW)
    day.project.raters.update(read_guideline=guideline)


def cited(page: Page) -> list[str | None]:
    return [each.get_attribute("data-clause") for each in page.locator(".clauses li").all()]


def test_clauses_are_found_by_number_and_words(visit: Visit) -> None:
    page = begin(visit, "optional", "One.")
    clauses = [
        {"code": code, "title": title, "excerpt": text}
        for code, title, text in (("1", "Refunds", "30 days"), ("2", "Crédit", ""), ("2.1", "Gifts", "no refunds"))
    ]
    found = {typed: page.evaluate(FIND, [clauses, typed]) for typed in ("1", "2", "2.1", "refund", "credit", "30", "x")}
    assert found == {
        "1": [["1", "2.1"], "1"],
        "2": [["2", "2.1"], None],
        "2.1": [["2.1"], "2.1"],
        "refund": [["1", "2.1"], None],
        "credit": [["2"], None],
        "30": [["1"], None],
        "x": [[], None],
    }


def test_clause_is_cited_by_touch(visit: Visit) -> None:
    day = RaterDay(
        ["One.", "Two."], protocol="every_step", asks_clauses="optional", asks_omissions=True, asks_evidence=True
    )
    publish_policy(day)
    page = day.begin(visit(day.user, width=390))
    page.locator("[data-rate='-1']").tap()
    page.locator("[popovertarget=help]").tap()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.locator("#help [data-act=clause]").tap()
    expect(page.locator("#help")).to_be_hidden()
    page.locator(".clausepick [data-clause='1.1']").tap()
    assert cited(page) == ["1.1"]


def test_clauses_are_cited_by_keyboard(visit: Visit) -> None:
    page = begin(visit, "negatives", "One.", "Two.")
    press(page, "l")
    assert page.locator(".clausepick").count() == 0  # the step is not rated
    press(page, "13")
    expect(page.locator("#submit")).to_have_attribute("data-state", "cite_clause")
    page.locator("#submit").focus()
    page.keyboard.press("Enter")  # goes to what is missing
    expect(page.locator("#step-0 .clausepick input")).to_be_focused()
    assert not accessibility_violations(page)
    press(page, "2")  # no other number begins with it
    assert cited(page) == ["2"]
    expect(page.locator("#submit")).to_have_attribute("data-state", "all_rated")
    press(page, "k")
    press(page, "kl")
    page.keyboard.type("photo")
    page.keyboard.press("Enter")
    assert cited(page) == ["2", "1.1"]
    press(page, "z")
    assert cited(page) == ["2"]
    press(page, "l")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert cited(page) == ["2", "1.1"]
    page.locator(".clauses li[data-clause='2'] button").click()
    saved(page)
    page.reload()
    expect(page.locator("html[data-ready] .clauses li")).to_have_count(1)
    page.keyboard.press("l")
    page.keyboard.press("Escape")
    expect(page.locator(".clausepick")).to_have_count(0)
    press(page, "1")  # another rating keeps the clauses
    page.locator("#submit").click()
    eventually(page, Submission.objects.exists)
    stored = Judgment.objects.get(turn__step__position=0).citations or []
    assert [(each["clause"], each["version"]) for each in stored] == [("1.1", "1")]
