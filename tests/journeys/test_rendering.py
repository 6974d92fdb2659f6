"""Rendering of traces in a browser: agents, images, long output, right-to-left text; error boxes, active time."""

import datetime as dt
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from labeling.models import Assignment, Judgment, Option, OptionPart, Step, StepReview, Submission, Trace
from people import members
from people.models import Role
from tests import factories
from tests.image_files import make_image
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, press, ratings, saved

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = ("user", "reasoning", "action", "observation", "answer")


def as_agent(day: RaterDay) -> None:
    """Turn the trace into an agent run with tools."""
    trace = Trace.objects.get(project=day.project)
    for position, kind in enumerate(KINDS):
        Step.objects.filter(trace=trace, position=position).update(
            kind=kind, is_rateable=kind not in ("user", "observation")
        )
    options = {option.step.position: option for option in Option.objects.filter(step__trace=trace)}
    parts: list[tuple[int, dict[str, Any]]] = [
        (
            2,
            {"kind": "call", "name": "edit", "text": '{"file": "a.py", "lines": [1, 2, 3], "why": "' + "x" * 60 + '"}'},
        ),
        (2, {"kind": "diff", "name": "a.py", "text": "@@ -1 +1 @@\n-old\n+new"}),
        (3, {"kind": "result", "name": "edit", "text": "line of output\n" * 800}),
    ]
    for number, (position, fields) in enumerate(parts):
        OptionPart.objects.create(option=options[position], position=number, **fields)
    factories.make_image_part(options[3], position=len(parts), description="The plot", data=make_image(size=(800, 600)))


def test_agent_trace_is_rated_by_keyboard(visit: Visit) -> None:
    day = RaterDay(["Book it.", "I look first.", "edit", "done", "All is done."], protocol="every_step")
    as_agent(day)
    page = day.begin(visit(day.user))
    expect(page.locator("#where")).to_have_attribute("data-step", "1")  # messages of users and tools are not rated
    expect(page.locator(".code").first).to_contain_text('"lines": [')  # pretty
    assert page.locator(".diff__added").inner_text() == "+new"
    fold, output = page.locator(".obs .fold__toggle"), page.locator(".obs pre")
    expect(fold).to_contain_text("801 lines")
    assert output.inner_text().count("line of output") == 19  # its first and last lines
    fold.click()
    expect(fold).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".obs .gap[hidden]")).to_have_count(0)
    assert (output.text_content() or "").count("line of output") == 800
    fold.click()
    assert output.inner_text().count("line of output") == 19
    image = page.locator("img.picture__image")
    image.scroll_into_view_if_needed()
    expect(image).to_have_js_property("naturalWidth", 800)
    assert not accessibility_violations(page)
    press(page, "3")  # the highlighted step is out of sight: the key only brings it back
    press(page, "313")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
    assert ratings() == [1, -1, 1]


JSON = """async (source) => {
  const { loadRenderers, optionBody } = await import('/static/js/work/rendering.js');
  await loadRenderers([source]);
  const box = document.createElement('div');
  box.append(optionBody({ kind: 'action' }, { parts: [{ kind: 'call', name: 'f', text: source }] }, (word) => word));
  return box.textContent;
}"""


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ('{"id":12345678901234567890,"x":1.50}', '{"id": 12345678901234567890, "x": 1.50}'),
        ('{"a":1,"a":[]}', '{"a": 1, "a": []}'),
        (
            '{"long": "%s", "empty": {}, "list": [1, {"b": "\\u00e9,:"}]}' % ("x" * 60),
            '{\n  "long": "%s",\n  "empty": {},\n  "list": [\n    1,\n    {\n      "b": "\\u00e9,:"\n    }\n  ]\n}'
            % ("x" * 60),
        ),
        ('{"code": "%s\\ndef f():"}' % ("# " * 40), '{\n  "code": "%s\ndef f():"\n}' % ("# " * 40)),
        ('{"broken": ', '{"broken": '),
        ("ls -la", "ls -la"),
    ],
)
def test_tool_call_is_formatted_without_changes(source: str, shown: str, visit: Visit) -> None:
    """Very long numbers and duplicate names stay unchanged."""
    assert visit(factories.make_user(), "/").evaluate(JSON, source) == shown


def test_display_math_is_typeset_and_hostile_text_does_not_block(visit: Visit) -> None:
    lines = (
        r"So \begin{align*} x &= 1 \\ y &= \frac{1}{\sqrt{2}} \end{align*} and \boxed{\frac{1}{\sqrt{\frac{1}{2}}}}."
    )
    openings = r"\[" * 2000 + "$$ " * 900
    day = RaterDay([lines, openings, "$" + "x+" * 2500 + "1$", r"\boxed{" * 600])
    page = day.begin(visit(day.user))
    expect(page.locator("#step-0 .katex")).to_have_count(2)
    expect(page.locator("#step-0 .tex-source")).to_have_count(0)
    press(page, "3333")
    expect(page.locator("#submit")).to_have_attribute("data-state", "no_error")


def test_invalid_formula_shows_its_source(visit: Visit) -> None:
    """Invalid formulas, and those with forbidden commands, show their source."""
    steps: list[str | list[str]] = [r"So $\frac{1}{$ and \(\unheard{x}\).", r"See $\href{https://example.org}{it}$."]
    day = RaterDay([*steps, "$2$"])
    owner = factories.make_user()
    members.add_member(project=day.project, user=owner, role=Role.OWNER, now=timezone.now())
    for page in (visit(owner, dark=True), day.begin(visit(day.user))):
        if "work" not in page.url:
            page.goto(reverse("dashboard:trace", args=[day.project.slug, Trace.objects.get().pk]))
        expect(page.locator(".katex")).to_have_count(1)
        for step in steps:
            expect(page.get_by_text(str(step))).to_be_visible()
        assert not accessibility_violations(page)


def test_formula_colors_do_not_hide_it(visit: Visit) -> None:
    day = RaterDay([r"$\color{black} x \textcolor{#111}{y} \colorbox{black}{z} \phantom{w}$"])
    page = day.begin(visit(day.user, dark=True))
    inside = page.locator("#step-0 .katex-html")
    ink = page.locator("#step-0 .katex").evaluate("node => getComputedStyle(node).color")
    every = "nodes => [...new Set(nodes.map((node) => getComputedStyle(node).%s))]"
    assert set(inside.locator("*").evaluate_all(every % "color")) == {ink, "rgba(0, 0, 0, 0)"}
    assert inside.locator("*").evaluate_all(every % "backgroundColor") == ["rgba(0, 0, 0, 0)"]


def test_long_trace_and_huge_step_stay_responsive(visit: Visit) -> None:
    steps: list[str | list[str]] = [f"Step $x_{{{n}}} = {n}$." for n in range(106)]
    day = RaterDay([*steps, "word " * 40_000], protocol="every_step")
    page = day.begin(visit(day.user))
    took = page.evaluate(
        """async () => {
          const began = performance.now();
          for (let n = 0; n < 107; n += 1) {
            document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '3', bubbles: true }));
            await new Promise(requestAnimationFrame);
          }
          return (performance.now() - began) / 107;
        }"""
    )
    expect(page.locator("#submit")).to_have_attribute("data-state", "all_rated")
    assert took < 250, f"{took:.0f} ms a rating"  # generous for slow machines; bench.browser measures


def test_right_to_left_and_enlarged_text_is_usable(visit: Visit) -> None:
    day = RaterDay(["נחשב את הסכום: $1 + 1 = 2$.", "x = " + "1 + " * 100 + "1"])
    page = day.begin(visit(day.user, width=1280))
    assert page.locator("#step-0 [data-slot=body]").evaluate("node => getComputedStyle(node).direction") == "rtl"
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    off_the_side = (
        "[...document.querySelectorAll('body *')].filter((each) => each.getBoundingClientRect().right > innerWidth + 1)"
    )
    wide = f"{off_the_side}.filter((each) => !each.closest('[tabindex]')).map((each) => each.className)"
    assert page.evaluate(wide) == []
    page.locator(".dock [data-rate='1']").click()
    expect(page.locator("#where")).to_have_attribute("data-step", "2")
    expect(page.locator(".step.is-now")).to_be_in_viewport()


def test_reduced_motion_is_respected(visit: Visit) -> None:
    day = RaterDay([f"Step {n}." for n in range(30)])
    page = day.begin(visit(day.user, reduced_motion="reduce"))
    calls = "window.how = []; const old = window.scrollBy;"
    page.evaluate(calls + "window.scrollBy = (o) => { how.push(o.behavior); old.call(window, o) }; null")
    page.wait_for_timeout(400)  # slow presses, because quick ones jump in any case
    press(page, "3")
    assert set(page.evaluate("window.how")) == {"instant"}


def test_error_box_values_are_saved_and_restored(visit: Visit) -> None:
    asks = {"asks_error_category": True, "asks_reason": True, "asks_corrected_step": True}
    day = RaterDay(["One.", "Two.", "Three."], protocol="every_step", **asks)
    page = day.begin(visit(day.user))
    press(page, "31")
    page.locator(".errorbox [value=calculation]").check()
    page.locator(".errorbox [name=reason]").fill("Adds wrongly")
    page.locator(".errorbox [name=corrected]").fill("Two and a half.")
    page.locator(".errorbox [name=corrected]").blur()
    saved(page)
    assert list(Judgment.objects.filter(rating=-1).values_list("category", "reason")) == [
        ("calculation", "Adds wrongly")
    ]
    assert StepReview.objects.get(step__position=1).written_text == "Two and a half."
    day.begin(page)
    expect(page.locator(".errorbox [value=calculation]")).to_be_checked()
    expect(page.locator(".errorbox [name=reason]")).to_have_value("Adds wrongly")
    expect(page.locator(".errorbox [name=corrected]")).to_have_value("Two and a half.")
    assert not accessibility_violations(page)


def test_steps_are_revealed_one_at_a_time_without_verdict(visit: Visit) -> None:
    day = RaterDay(["One.", "Two.", "Three."], reveals_one_step_at_a_time=True)
    trace = Trace.objects.get(project=day.project)
    type(trace.problem).objects.filter(pk=trace.problem_id).update(reference_answer="SECRET 42")
    page = day.begin(visit(day.user))
    expect(page.locator("#step-0")).to_be_visible()
    expect(page.locator("#step-1")).not_to_be_visible()
    assert "SECRET 42" not in page.content()
    page.keyboard.press("3")
    expect(page.locator("#step-1")).to_be_visible()
    expect(page.locator("#step-2")).not_to_be_visible()


@pytest.mark.parametrize(
    ("answer", "formulas"),
    [
        (r"\frac{25\pi}{2}", 1),
        ("2x^2 - 1", 1),
        (r"12\text{ square units}", 1),
        (r"$\pi$ or $2\pi$", 2),
        (r"the angle is \pi", 0),
        ("snake_case and 42", 0),
        ("`x^2`", 0),
    ],
)
def test_bare_formula_as_answer_is_typeset(answer: str, formulas: int, visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], shows_reference_answer=True)
    trace = Trace.objects.get(project=day.project)
    type(trace.problem).objects.filter(pk=trace.problem_id).update(reference_answer=answer)
    lead = factories.make_user()
    members.add_member(project=day.project, user=lead, role=Role.LEAD, now=timezone.now())
    trace_page = visit(lead)
    trace_page.goto(reverse("dashboard:trace", args=[day.project.slug, trace.pk]))
    for shown in (
        day.begin(visit(day.user)).locator("[data-slot=answer]"),
        trace_page.locator("[data-text=answer]"),
    ):
        expect(shown.locator(".katex")).to_have_count(formulas)
        if not formulas:
            expect(shown).to_contain_text(answer.replace("`", ""))


def test_active_time_counts_only_activity(visit: Visit) -> None:
    day = RaterDay(["One.", "Two.", "Three."], protocol="every_step")
    page = visit(day.user)
    page.clock.install()
    day.begin(page)
    # The browser's clock runs ahead, and the server caps active time at the time of the assignment.
    Assignment.objects.update(first_held_at=timezone.now() - dt.timedelta(minutes=10))
    page.mouse.move(10, 10)
    page.clock.run_for(10_000)  # reads for ten seconds
    page.keyboard.press("3")
    page.clock.run_for(300_000)  # absent for five minutes, of which half a minute counts
    page.keyboard.press("3")
    hide = "Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '%s' });"
    page.evaluate(hide % "hidden" + "document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.run_for(20_000)  # another page is active
    page.evaluate(hide % "visible" + "document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.run_for(5_000)
    page.keyboard.press("3")
    page.clock.run_for(4_000)  # reviews the whole trace
    page.keyboard.press("Enter")
    page.clock.run_for(5_000)
    eventually(page, lambda: Submission.objects.count() == 1)
    first, second, third = StepReview.objects.order_by("step__position").values_list("active_ms", flat=True)
    assert 10_000 <= (first or 0) <= 11_500
    assert (second or 0) == pytest.approx(30_000, abs=1_500)
    assert (third or 0) == pytest.approx(5_000, abs=1_500)
    on_steps = sum(each or 0 for each in (first, second, third))
    assert (Submission.objects.get().total_ms or 0) - on_steps == pytest.approx(4_000, abs=1_500)


def test_active_time_counts_in_one_page_at_a_time(visit: Visit) -> None:
    """Two windows side by side are visible at the same time."""
    page = visit(factories.make_user(), "/")
    at_once = """async () => {
      const { ActiveClock } = await import('/static/js/work/clock.js');
      const begin = (here) => ({ here, clock: new ActiveClock({ now: () => now, visible: () => true }).listen(here) });
      let now = 0;
      const both = [begin(document.querySelector('main')), begin(document.querySelector('header'))];
      const touch = async (one) => {
        one.here.dispatchEvent(new Event('pointerdown'));
        await new Promise((done) => setTimeout(done, 50));  // the other one hears of it
      };
      for (const one of [both[0], both[1], both[0], both[1]]) { await touch(one); now += 10_000; }
      return both.map(({ clock }) => clock.take());
    }"""
    assert page.evaluate(at_once) == [20_000, 20_000]
