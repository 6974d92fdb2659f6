"""The highlighted step is in the free area between problem and dock, at every size of the screen."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from bench.lit_step import MOVES, SIZES
from labeling.models import Option, Project, Step
from tests.journeys.conftest import Visit
from tests.journeys.test_work import RaterDay, eventually, press, ratings

pytestmark = pytest.mark.django_db(transaction=True)


def tall_trace(project: Project) -> None:
    """Make it an agent run with a long policy on top, and observations and steps of very different heights."""
    for step in Step.objects.filter(trace__project=project).order_by("position"):
        is_context = step.position == 0 or step.position % 3 == 2
        kind = "system" if step.position == 0 else "observation" if is_context else "action"
        lines = {0: 300, 2: 25, 4: 3, 5: 60, 7: 90, 10: 35}.get(step.position % 11, 2)
        Step.objects.filter(pk=step.pk).update(kind=kind, is_rateable=not is_context)
        text = "\n".join(f"Line {n} of step {step.position}, where $x_{{{n}}} = {n}$." for n in range(lines))
        Option.objects.filter(step=step).update(text=text)


def begin_at(visit: Visit, day: RaterDay, size: tuple[int, int]) -> Page:
    page = visit(day.user)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    day.begin(page)
    page.wait_for_timeout(400)
    return page


@pytest.mark.parametrize("reveals", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_lit_step_is_in_the_free_area(size: tuple[int, int], reveals: bool, visit: Visit) -> None:
    day = RaterDay([f"Step {n}." for n in range(34)], protocol="every_step", reveals_one_step_at_a_time=reveals)
    tall_trace(day.project)
    problem = "Let $a_1 = 1$ and so on. " * 40
    day.project.problems.update(text=problem)
    page = begin_at(visit, day, size)
    wrong: list[Any] = page.evaluate(MOVES, [list("3" * 20 + "kkkkkkkkkkjjj"), 20])
    assert wrong == []


def test_key_brings_a_step_into_sight_before_it_rates(visit: Visit) -> None:
    day = RaterDay([f"Step {n}." for n in range(60)], protocol="every_step")
    page = begin_at(visit, day, (1440, 900))
    page.mouse.move(400, 500)
    page.mouse.wheel(0, 1500)
    expect(page.locator(".step.is-now")).not_to_be_in_viewport()
    press(page, "3")
    expect(page.locator(".step.is-now")).to_be_in_viewport()
    assert page.locator("#where").get_attribute("data-step") == "1"
    press(page, "3")
    eventually(page, lambda: ratings() == [1])


@pytest.mark.parametrize("size", [(720, 450), (844, 390), (911, 512)])
def test_problem_and_dock_leave_room_on_low_screens(size: tuple[int, int], visit: Visit) -> None:
    day = RaterDay(["One.", "Two."])
    day.project.problems.update(text="A long problem. " * 100)
    page = begin_at(visit, day, size)
    dock, top = page.locator(".dock").bounding_box(), page.locator(".top").bounding_box()
    assert dock
    assert top
    assert dock["y"] - (top["y"] + top["height"]) > size[1] / 2, json.dumps([dock, top])
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
