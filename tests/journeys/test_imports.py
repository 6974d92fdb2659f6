"""A lead imports a file: chooses it, previews the import, follows it, reads its report, and undoes it."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from jobs import runner
from jobs.models import Job
from labeling.models import Trace
from labeling.traces import import_job, undo
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.example_project import make_example_project

pytestmark = pytest.mark.django_db(transaction=True)


def run(handler: Any) -> None:
    """Run the latest job of the handler, as a worker would."""
    job = Job.objects.filter(kind=handler.KIND).latest("pk")
    runner.run_job(job.pk, handler.chunks)


def lines(n: int) -> bytes:
    steps = ["First, $1 + 1 = 2$.", "Then we add one more, so that it is $x^2 = 4$."]
    records = [{"problem": f"What is ${number} + 2$?", "steps": steps, "labels": [1, -1]} for number in range(n)]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def see_that_it_can_be_used(page: Page) -> None:
    assert accessibility_violations(page) == []
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_a_file_comes_in_and_is_taken_back(visit: Visit, settings: Any, tmp_path: Path, width: int, dark: bool) -> None:
    settings.DATA_DIR = tmp_path
    scene = make_example_project()
    before = Trace.objects.count()
    page = visit(scene.lead, width=width, dark=dark)
    page.goto(reverse("dashboard:imports", args=[scene.project.slug]))
    see_that_it_can_be_used(page)
    page.get_by_label("Upload a file").set_input_files(
        {"name": "sums.jsonl", "mimeType": "application/jsonl", "buffer": lines(12) + b"{\n"}
    )
    page.get_by_role("button", name="Preview import").click()
    expect(page.get_by_role("heading", name="sums.jsonl")).to_be_visible()
    expect(page.locator("#bad")).to_be_visible()
    expect(page.locator(".rung").first.get_by_role("img", name="positive")).to_be_visible()
    see_that_it_can_be_used(page)
    page.get_by_label("Ratings in the file").select_option("judge")
    page.get_by_label("Name of the labeler").fill("a small model, prompt 3")
    page.get_by_label("Skip bad lines").check()
    page.get_by_role("button", name="Import file").click()
    expect(page.locator('#import-progress[data-state="queued"]')).to_be_visible()
    see_that_it_can_be_used(page)
    run(import_job)
    expect(page.locator('#import-progress[data-state="done"]')).to_be_visible()  # the page polls
    expect(page.get_by_text("judge: a small model, prompt 3")).to_be_visible()
    assert Trace.objects.count() == before + 12
    see_that_it_can_be_used(page)
    with page.expect_download() as fetched:
        page.get_by_role("link", name="Download all as CSV").click()
    assert fetched.value.path().read_text().splitlines()[1].startswith("13,2,")
    page.get_by_role("button", name="Undo import").click()
    expect(page.locator("#undoing")).to_be_visible()
    run(undo)
    expect(page.locator("[data-undone]")).to_be_visible()
