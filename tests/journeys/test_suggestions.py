"""A lead shows a machine's labels to some annotators; one of them changes an answer after seeing its label."""

import pytest
from playwright.sync_api import expect

from labeling.models import Exposure, RevealedLabel, Submission
from labeling.projects import suggestions
from labeling.queue import exposures
from tests import factories
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_work import RaterDay, eventually, press, saved
from tests.labeling import suggested_project
from tests.machines import machine_labels
from tests.people import personas

pytestmark = pytest.mark.django_db(transaction=True)
STEPS: list[str | list[str]] = ["One.", "Two.", "Three."]


def test_labels_are_revealed_after_the_answer(visit: Visit) -> None:
    day = RaterDay(STEPS)
    trace, rater = day.project.traces.get(), day.project.raters.get()
    machine = factories.make_machine_rater(day.project)
    machine_labels.label_by_machine(machine, {trace: 1})
    plan = suggested_project.start(day.project, reveal=0.9, seed=find_seed(rater.pk, trace.pk))
    page = day.begin(visit(day.user))
    expect(page.locator("[data-suggestion]")).to_have_count(0)
    press(page, "3")
    expect(page.locator("#step-0 [data-suggestion='1']")).to_be_visible()
    press(page, "3")
    expect(page.locator("#step-1 [data-suggestion='-1']")).to_be_visible()
    expect(page.locator("[data-suggestion]")).to_have_count(2)
    assert accessibility_violations(page) == []
    saved(page)
    page.reload()
    expect(page.locator("html[data-ready] [data-suggestion]")).to_have_count(2)
    page.locator("#step-1 input[value='-1']").check(force=True)
    page.locator("#submit").click()
    submitted = Submission.objects.filter(assignment__rater=rater).order_by("revision")
    eventually(page, lambda: submitted.count() == 2)
    assert list(RevealedLabel.objects.order_by("step__position").values_list("first_rating", "shown_rating")) == [
        (1, 1),
        (1, -1),
    ]
    assert list(submitted.values_list("revision", "finish_reason")) == [(1, None), (2, "found_error")]
    assert Exposure.objects.get(plan=plan).n_changed == 1


def test_labels_are_suggested_before_the_answer(visit: Visit) -> None:
    day = RaterDay(STEPS)
    trace, rater = day.project.traces.get(), day.project.raters.get()
    machine_labels.label_by_machine(factories.make_machine_rater(day.project), {trace: 1})
    suggested_project.start(day.project, suggest=0.9, seed=find_seed(rater.pk, trace.pk))
    page = day.begin(visit(day.user))
    expect(page.locator("#step-0 [data-suggestion='1'], #step-1 [data-suggestion='-1']")).to_have_count(2)
    assert accessibility_violations(page) == []


def test_lead_turns_suggestions_on(visit: Visit) -> None:
    cast = personas.make_personas()
    machine = factories.make_machine_rater(cast.project)
    machine_labels.label_by_machine(machine, {factories.make_trace(cast.project): None})
    page = visit(cast.lead)
    page.goto(f"/projects/{cast.project.slug}/judges/suggestions/")
    form = page.locator("form[action$='/suggestions/start']")
    form.locator("[name=machine]").select_option(str(machine.pk))
    form.locator("button[type=submit]").press("Enter")
    expect(page.locator("[data-plan=active]")).to_be_visible()
    expect(page.locator("[data-arm]")).to_have_count(2)
    assert accessibility_violations(page) == []
    page.locator("form[action$='/suggestions/stop'] button").press("Enter")
    expect(page.locator("[data-plan=lead]")).to_be_visible()
    plan = suggestions.find_plan(cast.project.pk)
    assert plan is not None
    assert plan.ended_at is not None


def find_seed(rater: int, trace: int) -> str:
    """Return a seed with which the first nine tenths contain this draw."""
    return next(seed for seed in map(str, range(100)) if exposures.draw_number(seed, rater, trace) < 0.9)
