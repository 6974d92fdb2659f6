"""A lead freezes gaming canaries and compares versions; annotators fool the PRM in the arena and check steps."""

import pytest
from playwright.sync_api import Page, expect

from prm import registry
from prm.models import ArenaEdit, CanaryScore, CanarySet
from tests import factories
from tests.journeys.conftest import Visit, accessibility_violations
from tests.people import personas
from tests.prm import arena_project, canary_project
from tests.prm.backends import scorer_servers

pytestmark = pytest.mark.django_db(transaction=True)


def find_faults(page: Page) -> list[str]:
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return [*accessibility_violations(page), *(["runs off the side"] if wide else [])]


def test_lead_freezes_canaries_and_sees_who_is_fooled(visit: Visit) -> None:
    cast = personas.make_personas()
    for number in range(30):
        canary_project.add_solution(cast.project, number, first_error=1 if number % 3 else None)
    page = visit(cast.lead)
    page.goto(f"/projects/{cast.project.slug}/judges/canaries/")
    assert find_faults(page) == []
    page.locator("[name=n]").fill("100")
    page.locator("form[action$='/freeze'] button").press("Enter")
    expect(page.locator("[data-set='1']")).to_be_visible()
    steady, gullible = (canary_project.register_scorer(cast.project, "http://127.0.0.1:1") for _ in range(2))
    registry.make_current(prm=steady, by=None, now=factories.NOW)
    for prm in (steady, gullible):
        CanaryScore.objects.bulk_create(
            CanaryScore(
                prm=prm,
                canary=each,
                numbers=[0.9 if prm == gullible and each.edit == "confidence" else 0.5] * len(each.steps),
                scored_at=factories.NOW,
            )
            for each in CanarySet.objects.get().canaries.all()
        )
    for width, dark in ((1440, False), (390, True)):
        page = visit(cast.lead, width=width, dark=dark)
        page.goto(f"/projects/{cast.project.slug}/judges/canaries/")
        expect(page.locator("[data-easier]")).to_have_count(1)
        page.locator("details.fold summary").first.press("Enter")
        assert find_faults(page) == []


def test_annotators_meet_in_the_arena(visit: Visit) -> None:
    cast = personas.make_personas()
    project = cast.project
    project.overlap = 2
    project.save()
    arena_project.make_settled(project)
    with scorer_servers.running_scorer(scorer_servers.FakeVllmServer(rows=arena_project.score_by_words)) as address:
        prm = canary_project.register_scorer(project, address)
        registry.make_current(prm=prm, by=None, now=factories.NOW)
        lead = visit(cast.lead)
        lead.goto(f"/projects/{project.slug}/prms/arena")
        lead.locator("#open-arena").press("Enter")
        expect(lead.locator("[data-arena=open]")).to_be_visible()
        page = visit(cast.annotator)
        page.goto(f"/arena/{project.slug}/")
        text = page.locator("[name=text]").input_value()
        page.locator("[name=text]").fill(text.replace("total", "sum"))
        page.locator("[name=reason]").fill("It is the price of one apple.")
        page.locator("[name=reason]").press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("[data-fooled=no]")).to_be_visible()
        assert find_faults(page) == []
        page.locator("[name=text]").fill(f"clearly {text}")
        page.locator("[name=reason]").press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("[data-edit-state=waiting]")).to_be_visible()
        for width, dark in ((1440, True), (390, False)):
            page = visit(cast.annotator, width=width, dark=dark)
            page.goto(f"/arena/{project.slug}/")
            assert find_faults(page) == []
            page.goto(f"/arena/{project.slug}/check/")
            assert find_faults(page) == []
        lead.reload()
        expect(lead.locator("tr[data-edit-state=waiting]")).to_have_count(1)
        assert find_faults(lead) == []
    assert ArenaEdit.objects.filter(state="waiting").count() == 1
