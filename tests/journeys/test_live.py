"""A lead opens live labeling; a rater rates and chooses by keyboard alone, loses the model's server and the web server,
and goes on without losing what they typed."""

import pytest
from playwright.sync_api import Page, expect

from labeling.models import Project, Submission, Trace
from live import answer_pool
from live.models import LivePolicy, LiveSession, LiveTurn
from tests.journeys.conftest import FORMS, Visit, accessibility_violations, violations_in_both_themes
from tests.live.step_servers import ScriptedStep, StepServer, running_steps
from tests.people import personas

pytestmark = pytest.mark.django_db(transaction=True)


def write_step(prompt: str, seed: int, index: int) -> ScriptedStep:
    n = prompt.count("we have")
    if n >= 3:
        return ScriptedStep(f"So the answer is \\boxed{{{index}}}.", "eos")
    return ScriptedStep(f"In step {n + 1} we have $x_{index} = {n + index}$.", "length" if index == 3 else "step")


def rate_all(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def expect_turn(page: Page, position: int, state: str = "options") -> None:
    expect(page.locator(f"#stage[data-position='{position}'][data-state='{state}']")).to_be_visible()


def open_policy(page: Page, slug: str, address: str) -> None:
    page.goto(f"/projects/{slug}/live/")
    page.locator("[name=problems]").fill("Find $x$.\nFind $y$.")
    page.locator("#problems-form button").press("Enter")
    for name, value in (("address", address), ("model", "scripted"), ("n_options", "4")):
        page.locator(f"#policy-form [name={name}]").fill(value)
    page.locator("#policy-form button[type=submit]").press("Enter")
    assert accessibility_violations(page) == []
    page.locator("#try-policy").press("Enter")
    expect(page.locator("[data-request=answered]")).to_have_count(2)
    assert accessibility_violations(page) == []
    page.locator("#open-policy").press("Enter")
    expect(page.locator("tr[data-open='1']")).to_have_count(1)


def test_rater_solves_live_and_loses_nothing(visit: Visit) -> None:
    cast = personas.make_personas()
    Project.objects.filter(pk=cast.project.pk).update(protocol="live", reserve_problem_share=0)
    server = StepServer(write_step)
    with running_steps(server) as address:
        open_policy(visit(cast.lead), cast.project.slug, address)
        page = visit(cast.annotator)
        page.goto(f"/live/{cast.project.slug}/")
        assert accessibility_violations(page) == []
        page.locator("#begin-live").press("Enter")
        expect_turn(page, 0)
        expect(page.locator("[data-option]")).to_have_count(4)
        expect(page.locator(".katex").first).to_be_visible()
        assert accessibility_violations(page) == []
        rate_all(page, "3", "1", "2")  # the option that was cut off needs no rating
        page.keyboard.press("Enter")
        expect_turn(page, 1)

        # The model's server goes away: the rater writes a step.
        server.is_up = False
        LivePolicy.objects.update(timeout=1)
        rate_all(page, "1", "1", "1", "w")
        page.keyboard.type("My own step, so we have 7.")
        expect(page.locator("#save[data-save=saved]")).to_be_visible()
        page.locator("#own button[type=submit]").press("Enter")
        expect_turn(page, 2, "away")
        expect(page.locator("[data-written]")).to_have_count(1)
        page.keyboard.press("w")
        page.keyboard.type("Half a")
        server.is_up = True
        expect_turn(page, 2)
        expect(page.locator("#own textarea")).to_have_value("Half a")

        # The web server goes away, and the page is reloaded later: ratings and text are still there.
        page.keyboard.press("Escape")
        page.route("**/live/sessions/**", lambda route: route.abort("internetdisconnected"))
        rate_all(page, "3", "1", "2", "w")
        page.keyboard.press("End")
        page.keyboard.type(" step")
        expect(page.locator("#save[data-save=kept]")).to_be_visible()
        page.unroute_all()
        page.reload()
        expect_turn(page, 2)
        expect(page.locator("#own textarea")).to_have_value("Half a step")
        expect(page.locator("#save[data-save=saved]")).to_be_visible()
        expect(page.locator("[data-option] input:checked")).to_have_count(3)
        page.locator("[data-choose][aria-disabled=false]").press("Enter")
        expect_turn(page, 3)
        rate_all(page, "3", "3", "3", "3")
        page.keyboard.press("Enter")
        expect(page.locator("#stage[data-finish=solution]")).to_be_visible()
        assert accessibility_violations(page) == []
    answer_pool.wait_until_idle()
    trace, session = Trace.objects.get(), LiveSession.objects.get(rater__isnull=False)
    assert (trace.kind, trace.n_steps) == ("live", 4)
    assert Submission.objects.get().finish_reason == "solution"
    assert LiveTurn.objects.filter(session=session, written_text="My own step, so we have 7.").exists()


def test_live_page_fits_each_form(visit: Visit) -> None:
    cast = personas.make_personas()
    Project.objects.filter(pk=cast.project.pk).update(protocol="live", reserve_problem_share=0)
    with running_steps(StepServer(write_step)) as address:
        open_policy(visit(cast.lead), cast.project.slug, address)
        for width, height in FORMS:
            page = visit(cast.annotator, width=width, height=height)
            page.goto(f"/live/{cast.project.slug}/")
            if page.locator("#begin-live").count():
                page.locator("#begin-live").press("Enter")
            expect_turn(page, 0)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert violations_in_both_themes(page) == []
    answer_pool.wait_until_idle()
