"""The work page with a keyboard and a screen reader: announcements, the accessibility tree, focus, forced colors."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_reading_tools import SIZES, begin_agent, covered
from tests.journeys.test_work import RaterDay, eventually, press, ratings

pytestmark = pytest.mark.django_db(transaction=True)


def test_ratings_and_moves_are_announced(visit: Visit) -> None:
    day = RaterDay(["Alpha.", "Beta.", "So $x = 1$."], protocol="every_step")
    page = day.begin(visit(day.user))
    said = page.locator("#announce[role=status]")
    expect(said).to_contain_text("Alpha.")  # the first step
    press(page, "3")
    expect(said).to_contain_text("Beta.")
    press(page, "1")
    expect(said).to_contain_text("3")
    expect(said).not_to_contain_text("$")  # the source of a formula is not spoken
    press(page, "kk")
    expect(said).to_contain_text("Alpha.")
    press(page, "z")
    expect(said).not_to_contain_text("Alpha.")  # what was undone
    assert page.locator("[role=status]").count() >= 2  # this one and the save state


def tree(page: Page) -> list[dict[str, Any]]:
    """Return the page's accessibility tree as Chromium gives it to screen readers."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    return [
        {
            "role": node.get("role", {}).get("value"),
            "name": node.get("name", {}).get("value", ""),
            **{each["name"]: each["value"].get("value") for each in node.get("properties", [])},
        }
        for node in nodes
        if not node.get("ignored")
    ]


def test_accessibility_tree_names_steps_ratings_and_tools(visit: Visit) -> None:
    page = begin_agent(visit)
    nodes = tree(page)
    roles = [node["role"] for node in nodes]
    assert roles.count("main") == 1
    assert roles.count("heading") >= 1
    groups = [node for node in nodes if node["role"] == "group" and node["name"].endswith("1")]
    assert groups  # the legend of the first rating
    radios = [node for node in nodes if node["role"] == "radio"]
    assert len(radios) == 3 * page.locator(".step[data-number]").count()
    assert all(node["name"] for node in radios)
    buttons = [node for node in nodes if node["role"] == "button"]
    assert all(node["name"] for node in buttons)
    assert not [node for node in nodes if node["role"] == "status" and node.get("live") not in {"polite", None}]
    pressed = [node for node in buttons if node.get("pressed") == "true"]
    assert len(pressed) == 3  # the filters of three kinds
    expanded = [node for node in buttons if node.get("expanded") is False]
    assert expanded  # folded outputs
    assert page.locator(".step[aria-current=step]").count() == 1


@pytest.mark.parametrize("size", SIZES)
def test_whole_trace_is_rated_by_tab_and_arrows_and_nothing_focused_is_covered(
    size: tuple[int, int], visit: Visit
) -> None:
    page = begin_agent(visit, size)
    page.keyboard.press("Tab")
    expect(page.locator(".step.is-now")).to_be_focused()  # not the top of the page
    for _ in range(30):
        page.keyboard.press("Tab")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        focused = page.evaluate(
            """() => {
              const node = document.activeElement;
              if (!node.closest('#stage') || node.closest('.problem, .map')) return null;
              const { y, height } = (node.closest('.rate') ?? node).getBoundingClientRect();
              return { y, height, name: node.outerHTML.slice(0, 80) };
            }"""
        )
        if focused and focused["height"] < size[1] / 3:
            assert not covered(page, focused), focused


def test_ratings_can_be_given_and_submitted_without_shortcuts(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], ["Next."], protocol="every_step")
    page = day.begin(visit(day.user))
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # the first radio button: negative
    eventually(page, lambda: ratings() == [-1])
    page.locator(".step.is-now").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    eventually(page, lambda: ratings() == [-1, -1])
    page.locator("#submit").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#step-0")).to_contain_text("Next.")


@pytest.mark.parametrize("dark", [False, True])
def test_forced_colors_keep_light_ratings_and_formulas(dark: bool, visit: Visit) -> None:
    day = RaterDay([r"So $x \neq 1$.", "Two.", "Three."], protocol="every_step")
    page = day.begin(visit(day.user, dark=dark, forced_colors="active"))
    expect(page.locator("#step-0 .katex")).to_have_count(1)
    style = "(node, name) => getComputedStyle(node)[name]"
    # Chromium paints a backplate behind adjusted text, which covers the stroke through "=".
    assert page.locator("#step-0 .katex").evaluate(style, "forcedColorAdjust") == "none"
    assert page.locator("#step-0").evaluate(style, "outlineStyle") == "solid"
    assert page.locator("#step-1").evaluate(style, "outlineStyle") == "none"
    press(page, "3")
    checked = page.locator("#step-0 .rate__opt:has(:checked)")
    assert checked.evaluate(style, "outlineStyle") == "solid"
    assert not accessibility_violations(page)


def test_escape_closes_a_notice(visit: Visit) -> None:
    day = RaterDay(["One."])
    page = day.begin(visit(day.user))
    page.evaluate("import('/static/js/work/messages.js').then(({ showNotice }) => showNotice('x', 'refused'))")
    expect(page.locator("#notices .note")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("#notices .note")).to_have_count(0)
