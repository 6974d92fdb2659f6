"""A lead splits a step in the preview of an import with the keyboard."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from labeling.models import Step
from labeling.traces import import_job
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_imports import run
from tests.people.personas import make_personas

pytestmark = pytest.mark.django_db(transaction=True)


def test_steps_are_split_before_the_import(visit: Visit, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    cast = make_personas()
    page = visit(cast.lead, width=390, height=844)
    page.goto(reverse("dashboard:imports", args=[cast.project.slug]))
    line = json.dumps({"problem": "2 + 2?", "text": "One. Two.\nThree."}).encode()
    page.get_by_label("Upload a file").set_input_files({"name": "a.jsonl", "mimeType": "text/plain", "buffer": line})
    page.locator("[type=submit]", has_text="Preview").press("Enter")
    expect(page.locator(".rung")).to_have_count(2)
    page.locator("[name=edit]").press("Enter")
    expect(page.locator("textarea")).to_have_count(2)
    assert accessibility_violations(page) == []
    page.locator("#text-0").focus()
    page.keyboard.press("Control+Home")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.type("<cut>")
    page.locator("[name=change]").press("Enter")
    expect(page.locator(".rung")).to_have_count(3)
    page.locator("#id_segmenter").select_option("sentences 2")
    page.locator("#id_labels_by").press("Enter")  # updates the preview, and imports nothing
    expect(page.locator("[data-misfit]")).to_be_visible()
    assert accessibility_violations(page) == []
    page.locator("#id_segmenter").select_option("lines 2")
    page.locator("[name=import]").press("Enter")
    expect(page.locator("#import-progress")).to_be_visible()
    run(import_job)
    assert list(Step.objects.order_by("position").values_list("options__text", flat=True)) == ["One.", "Two.", "Three."]
