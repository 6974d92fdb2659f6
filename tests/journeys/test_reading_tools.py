"""Tools for reading a long trace, by keyboard, on wide, low and narrow screens."""

import pytest
from playwright.sync_api import Page, expect

from labeling.models import Judgment, Option, OptionPart, Project, Step
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, press, saved

pytestmark = pytest.mark.django_db(transaction=True)

SIZES = [(1440, 900), (390, 844), (720, 450)]
NEEDLE = "needle in the output"


def long_agent_trace(project: Project) -> None:
    """Make it an agent run: a message, then actions (even positions) with outputs (odd ones) of 60 lines."""
    for step in Step.objects.filter(trace__project=project).order_by("position"):
        kind = "user" if step.position == 0 else "observation" if step.position % 2 else "action"
        Step.objects.filter(pk=step.pk).update(kind=kind, is_rateable=kind == "action")
        lines = [f"line {n} of output {step.position}" for n in range(60)]
        lines[30] = NEEDLE if step.position == 17 else lines[30]
        text = f"**Look** at it: $x_{{{step.position}}} = 1$." if kind != "observation" else "\n".join(lines)
        Option.objects.filter(step=step).update(text=text)


def begin_agent(visit: Visit, size: tuple[int, int] = (1440, 900), **settings: object) -> Page:
    day = RaterDay([f"Step {n}." for n in range(40)], protocol="every_step", **settings)
    long_agent_trace(day.project)
    page = visit(day.user, width=size[0])
    page.set_viewport_size({"width": size[0], "height": size[1]})
    day.begin(page)
    expect(page.locator(".map")).to_be_attached()
    return page


def lit(page: Page) -> str | None:
    return page.locator("#where").get_attribute("data-step")


@pytest.mark.parametrize("size", SIZES)
def test_keys_open_output_search_and_jump(size: tuple[int, int], visit: Visit) -> None:
    page = begin_agent(visit, size)
    folded = page.locator(".gap[hidden]")
    everything = folded.count()
    press(page, "o")  # the outputs on both sides of the first action
    expect(folded).to_have_count(everything - 2)
    page.keyboard.press("Shift+O")
    expect(folded).to_have_count(0)
    page.keyboard.press("Shift+O")
    expect(folded).not_to_have_count(0)
    press(page, "f")
    page.locator("#find input").fill(NEEDLE.upper())
    expect(page.locator("#find [role=status]")).to_contain_text("1")
    expect(page.get_by_text(NEEDLE)).to_be_in_viewport()
    page.wait_for_timeout(200)
    rect = "(({ y, height }) => ({ y, height }))([...CSS.highlights.get('found-now')][0].getBoundingClientRect())"
    assert not covered(page, page.evaluate(rect))
    page.keyboard.press("Escape")
    assert lit(page) == "1"  # a search moves the view, not the highlight
    press(page, "t")
    page.locator("#goto input").fill("12")
    page.keyboard.press("Enter")
    expect(page.locator("#where")).to_have_attribute("data-step", "12")
    expect(page.locator(".step.is-now")).to_be_in_viewport()
    press(page, "33n")  # the next unrated step is highlighted already, so `n` goes to the one after it
    expect(page.locator("#where")).to_have_attribute("data-step", "15")
    press(page, "t")
    page.locator("#goto input").fill("19")
    page.keyboard.press("Enter")
    press(page, "3n")  # after the last one, the first unrated one
    expect(page.locator("#where")).to_have_attribute("data-step", "1")
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not accessibility_violations(page)


def covered(page: Page, box: object) -> bool:
    """Tell whether the problem on top or the dock covers the box."""
    return bool(
        page.evaluate(
            """({ y, height }) => {
              const place = (name) => document.querySelector(name).getBoundingClientRect();
              const isSticky = getComputedStyle(document.querySelector('.problem')).position === 'sticky';
              return y < place(isSticky ? '.problem' : '.top').bottom - 2 || y + height > place('.dock').top + 2;
            }""",
            box,
        )
    )


def test_filters_shorten_a_kind_and_the_map_shows_and_jumps(visit: Visit) -> None:
    page = begin_agent(visit)
    output = page.locator(".obs[data-kind=observation] [data-slot=body]").first
    press(page, "t")
    page.locator("#goto input").fill("10")
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    top = page.locator(".step.is-now").bounding_box()
    page.locator("[data-filter=observation]").click()
    expect(output).to_be_hidden()
    page.locator("[data-filter=action]").click()
    expect(page.locator(".step.is-now p")).to_be_visible()  # the highlighted step is never shortened
    page.wait_for_timeout(200)
    after = page.locator(".step.is-now").bounding_box()
    assert top
    assert after
    assert abs(top["y"] - after["y"]) < 3  # the highlighted step stays where it is
    page.locator("[data-filter=action]").click()
    page.locator("[data-filter=observation]").click()
    expect(output).to_be_visible()
    page.wait_for_timeout(200)
    press(page, "1")
    expect(page.locator(".map [data-shown^='-1']")).to_have_count(1)
    marks = page.locator(".map i")
    expect(marks).to_have_count(40)
    box = marks.nth(38).bounding_box()
    assert box
    page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)
    expect(page.locator("#where")).to_have_attribute("data-step", "19")
    press(page, "r")
    expect(page.locator("#panel [data-panel]")).to_be_visible()
    beside, panel = page.locator(".map").bounding_box(), page.locator("#panel").bounding_box()
    assert beside
    assert panel
    assert beside["x"] + beside["width"] <= panel["x"]  # the map does not cover the guideline


def test_filters_reach_the_thought_and_the_call_within_a_step(visit: Visit) -> None:
    day = RaterDay([f"Step {n}." for n in range(12)], protocol="every_step")
    Step.objects.filter(trace__project=day.project).update(kind="action")
    for option in Option.objects.filter(step__trace__project=day.project):
        OptionPart.objects.create(option=option, position=0, kind="text", text="I think.")
        OptionPart.objects.create(option=option, position=1, kind="call", text="run()\n" * 9, name="shell")
    page = visit(day.user)
    day.begin(page)
    thoughts, calls = page.locator("[data-part=reasoning]"), page.locator("[data-part=action]")
    expect(page.locator("[data-filter=reasoning] .reader__count")).to_have_text("12")
    expect(page.locator("[data-filter=action] .reader__count")).to_have_text("12")
    height = "(box) => box.getBoundingClientRect().height"
    before = calls.nth(5).evaluate(height), thoughts.nth(5).evaluate(height)
    page.locator("[data-filter=action]").click()
    assert calls.nth(5).evaluate(height) < before[0] / 3
    assert calls.first.evaluate(height) == before[0]  # of the lit step
    assert thoughts.nth(5).evaluate(height) == before[1]


def test_source_and_copy_give_the_text_as_written(visit: Visit) -> None:
    page = begin_agent(visit)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    expect(page.locator("#step-2 b")).to_have_text("Look")
    source = "**Look** at it: $x_{2} = 1$."
    press(page, "x")
    expect(page.locator("#step-2 .source")).to_have_text(source)
    press(page, "x")
    expect(page.locator("#step-2 .katex").first).to_be_visible()
    press(page, "y")
    eventually(page, lambda: page.evaluate("navigator.clipboard.readText()") == source)


def test_revealed_steps_only_are_found(visit: Visit) -> None:
    page = begin_agent(visit, reveals_one_step_at_a_time=True)
    press(page, "f")
    page.locator("#find input").fill(NEEDLE)
    page.wait_for_timeout(400)
    expect(page.locator("#find [role=status]")).not_to_contain_text("1")
    page.keyboard.press("Escape")
    press(page, "t")
    page.locator("#goto input").fill("9")
    page.keyboard.press("Enter")
    assert lit(page) == "1" or not page.locator(".step.is-now").is_hidden()


def test_differences_of_alternatives_are_marked(visit: Visit) -> None:
    day = RaterDay(["One.", ["So $x = 8$.", "So $x = 7$.", "Thus $x = 8$."], "Three."])
    page = day.begin(visit(day.user))
    press(page, "31d")
    expect(page.locator(".alt").first.locator("ins")).to_have_text("7")
    expect(page.locator(".alt").first.locator("del")).to_have_text("8")
    expect(page.locator(".alt").nth(1).locator("ins")).to_have_text("Thus")
    assert not accessibility_violations(page)
    press(page, "d")
    expect(page.locator(".alt ins")).to_have_count(0)
    press(page, "1")
    eventually(page, lambda: Judgment.objects.count() == 3)


def test_explanation_is_reached_and_left_by_key(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], protocol="every_step", asks_reason=True)
    page = day.begin(visit(day.user))
    press(page, "1w")
    page.keyboard.type("Adds wrongly")
    page.keyboard.press("Escape")
    expect(page.locator("#step-0")).to_be_focused()
    saved(page)
    assert Judgment.objects.get().reason == "Adds wrongly"


@pytest.mark.parametrize("reveals", [False, True])
def test_steps_of_subagents_are_nested_and_open_when_the_light_arrives(reveals: bool, visit: Visit) -> None:
    day = RaterDay([f"Step {n}." for n in range(6)], protocol="every_step", reveals_one_step_at_a_time=reveals)
    for position, agent in ((2, "research"), (3, "research/browse"), (4, "research")):
        Step.objects.filter(trace__project=day.project, position=position).update(agent=agent)
    page = day.begin(visit(day.user))
    groups = page.locator(".sub")
    expect(groups).to_have_count(2)
    expect(page.locator(".sub .sub #step-3")).to_have_count(1)
    expect(groups.first.locator("#step-4")).to_have_count(1)
    if reveals:
        expect(groups.first).to_be_hidden()
    else:
        groups.first.locator("summary").first.click()
        expect(page.locator("#step-2")).to_be_hidden()
    press(page, "333")
    expect(page.locator("#step-3")).to_be_visible()
    assert lit(page) == "4"
    press(page, "33")
    assert lit(page) == "6"
    assert not accessibility_violations(page)


def test_a_key_changes_only_the_steps_that_it_means(visit: Visit) -> None:
    """What a key costs must not grow with the trace: Chromium restyles and lays out what has changed."""
    page = begin_agent(visit)
    press(page, "3")
    saved(page)
    page.wait_for_timeout(300)
    page.evaluate(
        """() => {
          globalThis.changed = new Set();
          new MutationObserver((list) => {
            for (const { target } of list) {
              const place = ".ladder > *, .map > *, .track > *, html";
              changed.add((target.closest ? target : target.parentElement).closest(place));
            }
          }).observe(document, { subtree: true, attributes: true, childList: true, characterData: true });
        }"""
    )
    press(page, "3")
    expect(page.locator("#where")).to_have_attribute("data-step", "3")
    saved(page)
    page.wait_for_timeout(300)
    count = "(all) => all.filter((each) => changed.has(each)).length"
    assert page.locator(".ladder > *").evaluate_all(count) == 2
    assert page.locator(".track > *").evaluate_all(count) == 2
    assert page.locator(".map > i").evaluate_all(count) == 2
    assert page.evaluate("document.documentElement.getAttribute('style')") is None
