"""Settings pages: save, preview the effect on open work, refuse invalid values."""

import re
from decimal import Decimal

import pytest
from django.db import models
from django.forms.models import model_to_dict
from django.test import Client
from django.urls import reverse

from dashboard.views.settings import SettingsForm
from jobs.models import Job
from labeling.models import Project
from labeling.projects import lifecycle
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient as Rating
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client, personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    client.force_login(cast.owner)
    return cast


def build_form_data(project: Project, **other: object) -> dict[str, object]:
    """Build the form as a browser sends it, without unchecked boxes."""
    data = {
        name: "" if value is None else value for name, value in model_to_dict(project, SettingsForm.Meta.fields).items()
    }
    return {name: value for name, value in {**data, **other}.items() if value is not False}


def test_settings_are_saved(client: Client, cast: Personas) -> None:
    address = reverse("dashboard:settings", args=[cast.project.slug])
    sent = build_form_data(
        cast.project, name="Sums, round 2", asks_reason="on", pay_per_hour="19.20", currency="eur", gold_bar="0.7"
    )
    assert client.post(address, sent).status_code == 302
    cast.project.refresh_from_db()
    assert cast.project.name == "Sums, round 2"
    assert cast.project.asks_reason
    assert cast.project.gold_bar == 0.7
    assert cast.project.pay_per_hour == Decimal("19.20")
    assert cast.project.currency == "EUR"


def test_every_setting_is_offered_and_saved(client: Client, cast: Personas) -> None:
    elsewhere = {"overlap_limit", "lease_seconds", "rating_rules", "trace_questions"}  # in other forms
    assert set(SettingsForm.Meta.fields) == lifecycle.CHANGEABLE_SETTINGS - elsewhere
    switches = [field.name for field in Project._meta.fields if isinstance(field, models.BooleanField)]
    address = reverse("dashboard:settings", args=[cast.project.slug])
    page = client.get(address).content.decode()
    assert [name for name in switches if f'name="{name}"' not in page] == []
    sent = build_form_data(cast.project, correction_days="3", **dict.fromkeys(switches, "on"))
    assert client.post(address, sent).status_code == 302
    saved = Project.objects.get(pk=cast.project.pk)
    assert [name for name in switches if not getattr(saved, name)] == []
    assert saved.correction_days == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"gold_share": "1.5"},
        {"gold_bar": "0.1"},
        {"pay_per_hour": "-1"},
        {"currency": "€"},
        {"protocol": "x"},
    ],
)
def test_invalid_settings_are_refused(wrong: dict[str, object], client: Client, cast: Personas) -> None:
    response = client.post(
        reverse("dashboard:settings", args=[cast.project.slug]), build_form_data(cast.project, **wrong)
    )
    assert response.status_code == 422
    assert response.context["form"].errors
    assert "Sums" in response.content.decode()
    cast.project.refresh_from_db()
    assert cast.project.name == "Sums"


def test_overlap_change_is_previewed_first(client: Client, cast: Personas) -> None:
    factories.make_entry(factories.make_lane(cast.project), factories.make_trace(cast.project), slots=2)
    address = reverse("dashboard:edit_overlap", args=[cast.project.slug])
    sent = {"overlap": 3, "overlap_limit": 5, "lease_minutes": 30}
    page = client.post(address, sent).content.decode()
    assert "data-changes" in page
    cast.project.refresh_from_db()
    assert cast.project.overlap == 2
    assert not Job.objects.exists()
    assert client.post(address, {**sent, "confirmed": "yes"}).status_code == 302
    cast.project.refresh_from_db()
    assert cast.project.overlap == 3
    assert Job.objects.get().kind == "labeling.change_overlap"
    assert client.post(address, {**sent, "overlap_limit": 2}).status_code == 422


def test_guideline_is_previewed_and_published(client: Client, cast: Personas) -> None:
    address = reverse("dashboard:guideline", args=[cast.project.slug])
    body = "# Rate\n\nSteps with $x^2$ <script>alert(1)</script>"
    page = client.post(address, {"body": body, "preview": "yes"}).content.decode()
    assert 'data-tex="x^2"' in page
    assert "<script>alert" not in page
    assert not cast.project.guidelines.exists()
    assert client.post(address, {"body": body, "publish": "yes", "changes": "All"}).status_code == 302
    assert cast.project.guidelines.get().changes == "All"
    assert client.post(address, {"body": " "}).status_code == 422
    assert "negative" in client.get(address + "?template=math").content.decode()
    shown = client.get(reverse("dashboard:guideline_version", args=[cast.project.slug, 1])).content.decode()
    assert 'data-tex="x^2"' in shown


def test_open_work_is_shown_before_a_change(client: Client, cast: Personas) -> None:
    rater = factories.make_rater(cast.project)
    Rating(factories.make_assignment(rater, factories.make_trace(cast.project))).rate([1])
    factories.make_assignment(rater, factories.make_trace(cast.project), state="held")
    for address in ("lifecycle", "edit_overlap"):
        sent = {"overlap": 3, "overlap_limit": 5, "lease_minutes": 30}
        url = reverse(f"dashboard:{address}", args=[cast.project.slug])
        answer = client.post(url, sent) if address == "edit_overlap" else client.get(url)
        page = answer.content.decode()
        assert dict(re.findall(r'data-figure="(\w+)">([^<]*)<', page)) == {
            "in_hand": "2",
            "begun": "1",
            "ahead": "1",
            "correcting": "0",
            "waiting": "0",
        }
        assert 'data-people="1"' in page
