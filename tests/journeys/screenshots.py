"""Pictures of the pages for README and guides, made from the demo: not a test, and not run with them.

    make pictures

They are saved in docs/pictures/, or in the folder that STEPMARK_PICTURES names."""

import io
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone
from PIL import Image
from playwright.sync_api import Page, ViewportSize, expect

from demo import make_projects
from labeling.models import Project, Rater, Settlement
from labeling.models.consensus import SettlementState
from tests.journeys import demo_forms
from tests.journeys.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
FOLDER = Path(os.environ.get("STEPMARK_PICTURES", Path(__file__).resolve().parents[2] / "docs" / "pictures"))
MATHS, AGENTS = "demo-maths", "demo-agents"
SMALL, TALL = ViewportSize(width=1200, height=700), ViewportSize(width=1200, height=1000)
NARROW = ViewportSize(width=960, height=920)


def test_shoot(visit: Visit) -> None:
    random.seed(7)  # which trace is assigned
    demo = make_projects.make_demo(now=timezone.now())
    page = visit(demo.annotator, width=1440)
    _shoot(page, "consent", reverse("annotate:enter", args=[MATHS]))
    demo_forms.pass_onboarding(demo.annotator)
    demo_forms.put_errors_first(MATHS, 4)
    demo_forms.put_errors_first(AGENTS, 2)
    _shoot(page, "work", _work(MATHS), _rate("333"))
    _shoot(page, "first-error", _work(MATHS), _rate("1"))
    page.keyboard.press("z")
    _shoot(page, "keys", _work(MATHS), _rate("?"))
    _shoot(page, "work-agent", _work(AGENTS), _rate("3"))
    _submit_a_few(page)
    _shoot(page, "home", reverse("annotate:home"))
    _shoot_as_lead(visit(demo.lead, width=1440), demo.projects[0])
    phone = visit(demo.annotator, width=390, device_scale_factor=2)
    _shoot(phone, "work-phone", _work(MATHS))
    _shoot_forms(visit(demo.annotator, **SMALL), visit(demo.lead, **SMALL))


def _shoot_forms(rater: Page, lead: Page) -> None:
    """Take a picture of each form of labeling."""
    demo_forms.put_recovering_traces_first()
    rater.set_viewport_size(TALL)
    _shoot(rater, "recovery", _work(demo_forms.RECOVERY), _act_from_the_top(demo_forms.rate_recovery))
    rater.set_viewport_size(NARROW)
    demo_forms.put_errors_first(demo_forms.VISUAL, 3)
    _shoot(rater, "images", _work(demo_forms.VISUAL), _act_from_the_top(demo_forms.find_misread_step))
    rater.set_viewport_size(SMALL)
    _shoot(rater, "clauses", _work(demo_forms.POLICY), demo_forms.search_clause)
    _shoot(rater, "error-kind", _work(AGENTS), _rate("1w"))
    demo_forms.begin_live(rater)
    _shoot(rater, "live", rater.url, demo_forms.rate_options)
    _shoot(lead, "monitors", reverse("dashboard:monitors", args=[demo_forms.MONITORS]), _scroll_to("#detection"))


def _act_from_the_top(act: Callable[[Page], None]) -> Callable[[Page], None]:
    def act_and_scroll(page: Page) -> None:
        act(page)
        page.evaluate("scrollTo(0, 0)")

    return act_and_scroll


def _scroll_to(selector: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.locator(selector).evaluate("each => scrollTo(0, each.getBoundingClientRect().top - 140)")

    return act


def _shoot_as_lead(page: Page, project: Project) -> None:
    settled = Settlement.objects.filter(project=project, state=SettlementState.SETTLED, n_readings__gte=3)
    for name in ("overview", "annotators", "agreement", "adjudication"):
        _shoot(page, f"lead-{name}", reverse(f"dashboard:{name}", args=[project.slug]))
    paused = Rater.objects.filter(project=project, paused_at__isnull=False).earliest("pk")
    _shoot(page, "lead-annotator", reverse("dashboard:annotator", args=[project.slug, paused.pk]))
    _shoot(page, "lead-trace", reverse("dashboard:trace", args=[project.slug, settled.earliest("pk").pk]))


def _work(slug: str) -> str:
    return reverse("annotate:work", args=[slug])


def _rate(keys: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        for key in keys:
            page.keyboard.press(key)

    return act


def _submit_a_few(page: Page) -> None:
    page.goto(_work(MATHS))
    for _ in range(3):
        _wait(page)
        shown = page.locator("html").get_attribute("data-ready")
        for _ in range(page.locator(".step[data-number]").count()):
            page.keyboard.press("3")
        page.keyboard.press("Enter")
        expect(page.locator(f"html:not([data-ready='{shown}'])[data-ready]")).to_be_attached()
    expect(page.locator("#save[data-state=saved]")).to_be_visible()


def _wait(page: Page) -> None:
    expect(page.locator("html[data-ready] .step.is-now")).to_be_visible()


def _shoot(page: Page, name: str, address: str, act: Callable[[Page], None] | None = None) -> None:
    page.goto(address)
    if "/work/" in address:
        _wait(page)
    if act:
        act(page)
    if page.locator("[data-tex]").count():
        expect(page.locator("[data-tex]")).to_have_count(0)
    page.evaluate("document.fonts.ready.then(() => 1)")
    page.mouse.move(0, 0)
    expect(page.locator("#toast:visible")).to_have_count(0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    _save_small(page.screenshot(animations="disabled"), FOLDER / f"{name}.png")


def _save_small(picture: bytes, path: Path) -> None:
    """Save a picture with 256 colors, which are enough for pages, in a third of the bytes."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(path, optimize=True)
