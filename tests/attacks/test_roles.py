"""Who may do what, beyond the walks over pages and the API: worker accounts, references of uploads."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from labeling.models import Project
from people import invitations, members
from people.models import Role
from tests import factories
from tests.people.personas import MEMBERS, LoggedInPersonas
from tests.test_permissions import URL_CASES

pytestmark = [pytest.mark.django_db, pytest.mark.fault]


def make_worker(project: Project, by: User) -> Client:
    """Let a crowd worker in, and return their browser."""
    Project.objects.filter(pk=project.pk).update(takes_worker_ids=True, completion_code="C1X9")
    _, token = invitations.create_invitation(
        project=project, role=Role.ANNOTATOR, by=by, now=timezone.now(), uses_allowed=3
    )
    client = Client()
    assert client.post(f"{reverse('annotate:join', args=[token])}?PROLIFIC_PID=5f1aaa").status_code == 302
    return client


def test_worker_account_has_fewer_pages_than_an_annotator(personas: LoggedInPersonas) -> None:
    """A worker sees no page that an annotator of the project does not see, and no page of an account."""
    cast = personas.cast
    worker = make_worker(cast.project, cast.lead)
    session = worker.cookies[django_settings.SESSION_COOKIE_NAME].value
    extra, met = {}, {}
    for name, case in URL_CASES.items():
        with transaction.atomic():
            address = reverse(name, kwargs=case.arguments(cast))
            worker.cookies[django_settings.SESSION_COOKIE_NAME] = session
            status = getattr(worker, case.method)(address, case.body).status_code
            met[name] = status
            if status < 400 <= case.answers["annotator"]:
                extra[name] = status
            transaction.set_rollback(True)
    assert extra == {}
    assert {name: met[name] for name in ("tokens", "account_change_password")} == {
        "tokens": 404,
        "account_change_password": 404,
    }
    pages = {name for name, status in met.items() if name.startswith("dashboard:") and status < 400}
    assert pages == {"dashboard:leave_project"}
    assert max(met.values()) < 500


@pytest.fixture
def _folder(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


@pytest.mark.usefixtures("_folder")
def test_reference_of_an_upload_is_valid_in_its_project_only(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    other = members.create_owned_project(name="Other", slug="other", by=cast.lead, now=factories.NOW)
    line = json.dumps({"problem": "SECRET-7", "steps": ["1"]}).encode() + b"\n"
    client = personas.client("lead")
    sent = client.post(
        reverse("dashboard:upload_import_file", args=[cast.project.slug]),
        {"upload": SimpleUploadedFile("traces.jsonl", line)},
    )
    query = sent.headers["Location"].partition("?")[2]
    here, elsewhere = (
        f"{reverse('dashboard:import_preview', args=[slug])}?{query}" for slug in (cast.project.slug, other.slug)
    )
    assert "SECRET-7" in client.get(here).content.decode()
    response = client.get(elsewhere)
    assert response.status_code == 302
    assert response.headers["Location"] == reverse("dashboard:imports", args=[other.slug])
    forged = here.replace("sent%3A", "sent%3A0").replace("sent:", "sent:0")
    assert client.get(forged).status_code == 302


def test_every_member_is_walked() -> None:
    assert {role.value for role in Role} == set(MEMBERS)
