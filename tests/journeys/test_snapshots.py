"""A lead states what only people know, orders a snapshot, follows it, reads its card and fetches a file."""

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
from tests.labeling.traces.test_load import bring_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scene(transactional_db: None, tmp_path: Path, settings: Any) -> ExampleProject:
    settings.DATA_DIR = tmp_path
    settings.DESTINATIONS = {"lake": "s3://datasets/stepmark"}
    made = make_example_project()
    bring_in(made.project, *(prm.make_line(problem=f"What is {n} + {n}?", labeler=f"r{n % 3}") for n in range(12)))
    return made


def build(made: Snapshot) -> None:
    """What the workers would do."""
    run_chunks(snapshots.prepare_snapshot(made, enqueue=False))
    run_chunks(snapshots.build_shard(made, 0, enqueue=False))
    made.refresh_from_db()
    run_chunks(finish_job.finish_snapshot(made))


def barriers(page: Page) -> list[str]:
    """From the top: what has been scrolled under the bar is covered by it."""
    page.evaluate("window.scrollTo(0, 0)")
    return accessibility_violations(page)


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_lead_makes_a_snapshot(scene: ExampleProject, visit: Visit, width: int, dark: bool) -> None:
    page = visit(scene.lead, width=width, dark=dark)
    page.goto(reverse("dashboard:disclosure", args=[scene.project.slug]))
    page.get_by_label("Base model").fill("Qwen2.5-Math-7B")
    page.get_by_role("button", name="Save disclosures").click()
    expect(page.get_by_role("status")).to_be_visible()
    assert not barriers(page)
    page.get_by_role("link", name="All snapshots").click()
    page.get_by_label("Name").fill("round-3")
    page.get_by_label("long table of steps").check()
    page.get_by_text("Splits and exclusions").click()
    expect(page.get_by_label("Validation split, % of problems")).to_be_visible()
    page.get_by_label("Validation split, % of problems").fill("20")
    assert not barriers(page)
    if folder := os.environ.get("STEPMARK_PICTURES"):
        page.screenshot(path=f"{folder}/snapshots-{width}.png", full_page=True)
    page.get_by_role("button", name="Build snapshot").click()
    expect(page.locator('#snapshot-progress[data-state="building"]')).to_be_visible()
    assert not barriers(page)
    build(Snapshot.objects.get(name="round-3"))
    expect(page.get_by_role("heading", name="Files", level=2)).to_be_visible(timeout=15_000)
    expect(page.get_by_role("cell", name="Qwen2.5-Math-7B")).to_be_visible()
    drawn = page.locator(".figures img").first
    drawn.scroll_into_view_if_needed()
    page.wait_for_function("(img) => img.complete && img.naturalWidth > 0", arg=drawn.element_handle())
    page.get_by_role("button", name="Deliver snapshot").click()
    expect(page.locator('[data-delivery="queued"]')).to_be_visible()
    assert not barriers(page)
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    if folder := os.environ.get("STEPMARK_PICTURES"):
        page.screenshot(path=f"{folder}/snapshot-{width}.png", full_page=True)
    with page.expect_download() as fetched:
        page.get_by_role("link", name="Download README.md").click()
    assert Path(fetched.value.path()).read_text().startswith("---\n")
