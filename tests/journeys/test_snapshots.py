"""A lead completes the disclosure, orders a snapshot, reads its card and downloads a file."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from exports import finish_job, snapshots
from exports.models import Snapshot
from tests.exports.snapshot_builder import run_chunks
from tests.formats import prm800k_lines as prm
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.example_project import ExampleProject, make_example_project
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scene(transactional_db: None, tmp_path: Path, settings: Any) -> ExampleProject:
    settings.DATA_DIR = tmp_path
    settings.DESTINATIONS = {"lake": "s3://datasets/stepmark"}
    made = make_example_project()
    load_lines(made.project, *(prm.make_line(problem=f"What is {n} + {n}?", labeler=f"r{n % 3}") for n in range(12)))
    return made


def build(made: Snapshot) -> None:
    """Build the snapshot, as workers do."""
    run_chunks(snapshots.prepare_snapshot(made, enqueue=False))
    run_chunks(snapshots.build_shard(made, 0, enqueue=False))
    made.refresh_from_db()
    run_chunks(finish_job.finish_snapshot(made))


def barriers(page: Page) -> list[str]:
    """Return accessibility violations, measured from the top because the bar covers scrolled content."""
    page.evaluate("window.scrollTo(0, 0)")
    return accessibility_violations(page)


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_lead_makes_a_snapshot(scene: ExampleProject, visit: Visit, width: int, dark: bool) -> None:
    page = visit(scene.lead, width=width, dark=dark)
    page.goto(reverse("dashboard:disclosure", args=[scene.project.slug]))
    page.get_by_label("Base model").fill("Qwen2.5-Math-7B")
    page.locator("form.states [type=submit]").click()
    expect(page.locator("[data-message=success]")).to_be_visible()
    assert not barriers(page)
    page.locator(f".page__head a[href='{reverse('dashboard:snapshots', args=[scene.project.slug])}']").click()
    page.locator("[name=name]").fill("round-3")
    page.locator("[name=formats][value=steps]").check()
    page.locator("details:has([name=validation]) summary").click()
    page.locator("[name=validation]").fill("20")
    assert not barriers(page)
    if folder := os.environ.get("STEPMARK_PICTURES"):
        page.screenshot(path=f"{folder}/snapshots-{width}.png", full_page=True)
    order = reverse("dashboard:order_snapshot", args=[scene.project.slug])
    page.locator(f"form[action='{order}'] [type=submit]").click()
    expect(page.locator("#build")).to_be_visible()
    assert not barriers(page)
    build(Snapshot.objects.get(name="round-3"))
    expect(page.locator("#snapshot-progress[data-state=built] #files")).to_be_visible(timeout=15_000)
    expect(page.get_by_role("cell", name="Qwen2.5-Math-7B")).to_be_visible()
    drawn = page.locator(".figures img").first
    drawn.scroll_into_view_if_needed()
    page.wait_for_function("(img) => img.complete && img.naturalWidth > 0", arg=drawn.element_handle())
    page.locator(".sent__form [type=submit]").click()
    expect(page.locator("[data-delivery] [role=status]")).to_be_visible()
    assert not barriers(page)
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    if folder := os.environ.get("STEPMARK_PICTURES"):
        page.screenshot(path=f"{folder}/snapshot-{width}.png", full_page=True)
    with page.expect_download() as fetched:
        page.locator("a[href$='README.md']").first.click()
    assert Path(fetched.value.path()).read_text().startswith("---\n")
