"""Quotes of a negative step and omissions on the work page: by keyboard, with formulas, after a reload."""

from playwright.sync_api import Page, expect

from labeling.models import Judgment, StepReview, Submission
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, press, pytestmark, saved  # noqa: F401  the mark

STEP = r"So $x^2 = 4$, and **thus** $x = 2$. So $x = 2$ twice."

# Select from the n-th occurrence of a text in a step to the end of that text.
SELECT = """([step, part, n]) => {
  const body = document.querySelector(`#step-${step} [data-slot=body]`);
  const texts = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    for (let at = node.data.indexOf(part); at >= 0; at = node.data.indexOf(part, at + 1)) {
      if (n-- > 0) continue;
      return getSelection().setBaseAndExtent(node, at, node, at + part.length);
    }
  }
}"""

FIND = """async ([source, quote, expected]) => {
  const { findQuote } = await import('/static/js/work/evidence.js');
  return findQuote(source, quote, expected);
}"""


def test_quotes_are_found_in_the_source_of_a_step(visit: Visit) -> None:
    day = RaterDay(["One."], asks_evidence=True)
    page = day.begin(visit(day.user))
    assert page.evaluate(FIND, [STEP, "x^2 = 4, and thus", 0]) == {
        "text": "x^2 = 4$, and **thus",
        "start": 4,
        "end": 24,
    }
    assert page.evaluate(FIND, [STEP, "x = 2", 99])["start"] == STEP.rindex("x = 2")
    assert page.evaluate(FIND, [STEP, "x = 2", 0])["start"] == STEP.index("x = 2")
    assert page.evaluate(FIND, [STEP, "x = 3", 0]) is None
    # Characters count, not units of UTF-16; marks of direction are shown by name.
    assert page.evaluate(FIND, ["𝒙 ⟦U+202E⟧ and 7", "and", 0]) == {"text": "and", "start": 4, "end": 7}
    assert page.evaluate(FIND, ["a", " ", 0]) is None


def expect_quotes(page: Page, *texts: str) -> None:
    expect(page.locator(".errorbox .evidence q")).to_have_text(list(texts))


def test_selected_text_is_attached_by_one_key(visit: Visit) -> None:
    day = RaterDay([STEP, "Two."], protocol="every_step", asks_evidence=True, asks_omissions=True)
    page = day.begin(visit(day.user))
    press(page, "v")  # nothing is selected
    page.evaluate(SELECT, [0, "twice", 0])
    press(page, "v")
    assert page.locator(".errorbox").count() == 0  # the step is not negative
    press(page, "1v")
    expect_quotes(page, "twice")
    page.evaluate(SELECT, [0, "So", 1])
    press(page, "vw")
    page.keyboard.type("thus x = 2")
    page.keyboard.press("Enter")
    expect_quotes(page, "twice", "So", "thus** $x = 2")
    assert not accessibility_violations(page)
    page.keyboard.press("Escape")
    press(page, "z")
    expect_quotes(page, "twice", "So")
    saved(page)
    page.reload()
    expect(page.locator("html[data-ready] .errorbox .evidence q")).to_have_count(2)
    press(page, "3i")
    page.keyboard.type("A check.")
    page.keyboard.press("Enter")
    expect(page.locator("#step-1 [data-slot=missing]")).to_contain_text("A check.")
    expect(page.locator("#submit[data-state=all_rated]")).to_be_visible()
    expect(page.locator("#ask")).to_be_hidden()
    page.keyboard.press("Enter")
    eventually(page, Submission.objects.exists)
    evidence = Judgment.objects.get(turn__step__position=0).evidence or []
    assert [STEP[each["start"] : each["end"]] for each in evidence] == ["twice", "So"]
    assert StepReview.objects.get(step__position=1).missing == "A check."
