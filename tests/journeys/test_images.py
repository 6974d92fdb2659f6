"""Images on the work page and on the page of a trace: shown at their place, and enlarged by keyboard."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from labeling.models import Option, ProblemImage, Step, Submission, Trace
from people import members
from people.models import Role
from tests import factories
from tests.image_files import make_image
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, press, ratings

pytestmark = pytest.mark.django_db(transaction=True)


def add_images(day: RaterDay) -> Trace:
    """Give the problem a figure, and a step a screenshot that is larger than the screen."""
    trace = Trace.objects.get(project=day.project)
    Step.objects.filter(trace=trace, position=1).update(kind="observation", is_rateable=False)
    options = {option.step.position: option for option in Option.objects.filter(step__trace=trace)}
    screenshot = make_image((40, 90, 160), size=(1600, 1000))
    factories.make_image_part(
        options[1], description="The page after the click", width=1600, height=1000, data=screenshot
    )
    figure = factories.make_image_part(
        options[2], description="", width=300, height=200, data=make_image("white", size=(300, 200))
    )
    assert figure.image is not None
    ProblemImage.objects.create(problem=trace.problem, position=0, image=figure.image, description="A triangle")
    type(trace.problem).objects.filter(pk=trace.problem_id).update(
        text="Find $x$.\n[image: A triangle]\nGive a number."
    )
    return trace


def test_images_are_enlarged_by_keyboard_and_do_not_move_the_step(visit: Visit) -> None:
    day = RaterDay(["I click.", "page", "figure", "So it is 3."], protocol="every_step")
    trace = add_images(day)
    page = day.begin(visit(day.user))
    problem = page.locator("[data-slot=problem]")
    expect(problem.locator("img")).to_have_js_property("naturalWidth", 300)
    expect(problem).not_to_contain_text("[image")
    press(page, "3")
    expect(page.locator(".step.is-now")).to_be_in_viewport()
    assert not accessibility_violations(page)
    dialog = page.locator("#image-dialog")
    press(page, "p")
    expect(dialog.locator("img")).to_have_js_property("naturalWidth", 300)  # of the highlighted step
    assert not accessibility_violations(page)
    press(page, "1")  # the size of its pixels, and no rating
    expect(dialog.locator("[data-slot=scale]")).to_contain_text("100")
    press(page, "+")
    expect(dialog.locator("[data-slot=scale]")).to_contain_text("150")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    press(page, "33")
    page.keyboard.press("Enter")
    eventually(page, lambda: Submission.objects.count() == 1)
    assert ratings() == [1, 1, 1]
    look_at_trace_page(day, trace, visit)


def look_at_trace_page(day: RaterDay, trace: Trace, visit: Visit) -> None:
    lead = factories.make_user()
    members.add_member(project=day.project, user=lead, role=Role.LEAD, now=timezone.now())
    page = visit(lead)
    page.goto(reverse("dashboard:trace", args=[day.project.slug, trace.pk]))
    button = page.locator("[data-act=enlarge]").nth(1)
    expect(button.locator("img")).to_have_attribute("alt", "The page after the click")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#image-dialog img")).to_have_js_property("naturalWidth", 1600)
    assert not accessibility_violations(page)
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
