"""A lead splits and merges the steps of a trace with the keyboard, and undoes it."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from labeling.models import Trace
from tests import factories
from tests.journeys.conftest import FORMS, Visit, accessibility_violations
from tests.journeys.test_lead_pages import find_faults
from tests.people.personas import make_personas

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("width", "height"), FORMS)
def test_lead_changes_steps_with_the_keyboard(visit: Visit, width: int, height: int) -> None:
    cast = make_personas()
    trace = factories.make_trace(cast.project, steps=["One. And so on.\nTwo.", "Three.", "Four."])
    page = visit(cast.lead, width=width, height=height)
    assert find_faults(page, reverse("dashboard:trace", args=[cast.project.slug, trace.pk])) == []
    page.locator("[data-change-steps]").press("Enter")
    expect(page.locator("textarea")).to_have_count(3)
    assert find_faults(page, page.url) == []
    page.locator("#text-0").focus()
    page.keyboard.press("Control+Home")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.type("<cut>")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator("[name=merge-2]")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#restore-steps")).to_be_visible()
    assert accessibility_violations(page) == []
    new = Trace.objects.available().get()
    assert (new.n_steps, new == trace) == (3, False)
    page.locator("#restore-steps").press("Enter")
    expect(page.locator("[data-change-steps]")).to_be_visible()
    assert Trace.objects.available().get() == trace
