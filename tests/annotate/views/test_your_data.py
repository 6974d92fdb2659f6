"""The page on which people download their data and erase their account."""

import json

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounts.models import Session, User
from events.models import Event
from people import members
from people.models import Role
from tests import factories

pytestmark = pytest.mark.django_db
PASSWORD = "seven green ladders"


@pytest.fixture(autouse=True)
def revocations_file(tmp_path: str, settings: Settings) -> None:
    settings.REVOCATIONS_FILE = f"{tmp_path}/revocations.jsonl"


@pytest.fixture
def anna() -> User:
    return factories.make_user("anna", email="anna@example.org", password=PASSWORD)


def log_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_download_is_logged(anna: User) -> None:
    response = log_in(anna).get(reverse("annotate:download_your_data"))
    assert json.loads(response.getvalue())["account"][0]["email"] == "anna@example.org"
    assert Event.objects.get(what="download.made").by == anna.pk


@pytest.mark.parametrize(
    ("username", "password", "wrong"),
    [("anna", "wrong", "password"), ("Anna", PASSWORD, "username"), ("anna", "", "password")],
)
def test_an_unconfirmed_erasure_changes_nothing(anna: User, username: str, password: str, wrong: str) -> None:
    response = log_in(anna).post(reverse("annotate:erase_account"), {"username": username, "password": password})
    assert response.status_code == 422
    assert list(response.context["form"].errors) == [wrong]
    assert User.objects.get(pk=anna.pk).erased_at is None


def test_erasure_logs_out_everywhere(anna: User) -> None:
    client, other = log_in(anna), log_in(anna)
    response = client.post(reverse("annotate:erase_account"), {"username": "anna", "password": PASSWORD})
    assert b"data-erased" in response.content
    assert User.objects.get(pk=anna.pk).erased_at
    assert not Session.objects.filter(user=anna).exists()
    assert other.get(reverse("annotate:your_data")).status_code == 302
    assert Event.objects.get(what="user.erased").by == anna.pk


def test_people_without_a_password_confirm_by_their_name() -> None:
    worker = factories.make_user("worker-7")
    worker.set_unusable_password()
    worker.save()
    client = log_in(worker)
    assert "password" not in client.get(reverse("annotate:your_data")).context["form"].fields
    assert client.post(reverse("annotate:erase_account"), {"username": "worker-7"}).status_code == 200
    assert User.objects.get(pk=worker.pk).erased_at


def test_the_last_owner_stays(anna: User) -> None:
    project = factories.make_project()
    members.add_member(project=project, user=anna, role=Role.OWNER, now=factories.NOW)
    response = log_in(anna).post(reverse("annotate:erase_account"), {"username": "anna", "password": PASSWORD})
    assert response.status_code == 422
    assert response.context["form"].non_field_errors()
