"""The page on which owners erase a member."""

import pytest
from django.urls import reverse
from pytest_django import Settings

from accounts.models import User
from people import members
from tests import factories
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def revocations_file(tmp_path: str, settings: Settings) -> None:
    settings.REVOCATIONS_FILE = f"{tmp_path}/revocations.jsonl"


def address_of(personas: LoggedInPersonas, person: str) -> str:
    cast = personas.cast
    return reverse("dashboard:erase_member", args=[cast.project.slug, cast.membership(getattr(cast, person)).pk])


@pytest.mark.fault
def test_owner_erases_a_member(personas: LoggedInPersonas) -> None:
    owner, address = personas.client("owner"), address_of(personas, "annotator")
    assert owner.get(address).status_code == 200
    assert owner.post(address, {"username": "lead"}).status_code == 422
    assert User.objects.get(pk=personas.cast.annotator.pk).erased_at is None
    assert owner.post(address, {"username": "annotator"}).status_code == 302
    assert User.objects.get(pk=personas.cast.annotator.pk).erased_at
    assert owner.get(address).status_code == 403


@pytest.mark.fault
def test_owner_erases_a_former_member(personas: LoggedInPersonas) -> None:
    cast, address = personas.cast, address_of(personas, "annotator")
    members.remove_member(membership=cast.membership(cast.annotator), by=cast.lead, now=factories.NOW)
    page = personas.client("owner").get(reverse("dashboard:members", args=[cast.project.slug]))
    assert address in page.content.decode()
    assert personas.client("owner").post(address, {"username": "annotator"}).status_code == 302
    page = personas.client("owner").get(reverse("dashboard:members", args=[cast.project.slug]))
    assert page.context["removed"] == []


def test_nobody_erases_themselves_here(personas: LoggedInPersonas) -> None:
    assert personas.client("owner").post(address_of(personas, "owner"), {"username": "owner"}).status_code == 403
