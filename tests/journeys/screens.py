"""Pictures of the pages for README and docs, made from a scene: not a test, and not run with them.

    .venv/bin/python -m pytest -p playwright tests/journeys/screens.py

They land in docs/pictures/, or in the folder that STEPMARK_PICTURES names."""

import os
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone

from people import invitations
from people.models import Role
from tests.journeys.conftest import Visit
from tests.journeys.scene import make_scene

pytestmark = pytest.mark.django_db(transaction=True)
FOLDER = Path(os.environ.get("STEPMARK_PICTURES", Path(__file__).resolve().parents[2] / "docs" / "pictures"))


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False)])
def test_shoot(width: int, dark: bool, visit: Visit) -> None:
    scene = make_scene()
    _, token = invitations.invite(project=scene.project, role=Role.ANNOTATOR, by=scene.lead, now=timezone.now())
    pictures = (
        ("login", None, reverse("account_login")),
        ("join", None, reverse("annotate:join", args=[token])),
        ("home", scene.annotator, reverse("annotate:home")),
        ("home-lead", scene.lead, reverse("annotate:home")),
        ("people", scene.lead, reverse("dashboard:people", args=[scene.project.slug])),
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, user, address in pictures:
        page = visit(user, width=width, dark=dark, device_scale_factor=1 if width > 700 else 2)
        page.goto(address)
        page.evaluate("document.fonts.ready")
        page.screenshot(path=FOLDER / f"{name}-{width}-{'dark' if dark else 'light'}.png")
