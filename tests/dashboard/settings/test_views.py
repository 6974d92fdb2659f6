"""Settings: kept by verbs, said before where work is under way, refused in words."""

import re
from decimal import Decimal

import pytest
from django.db import models
from django.forms.models import model_to_dict
from django.test import Client
from django.urls import reverse

from dashboard.settings.forms import SettingsForm
from jobs.models import Job
from labeling.models import Project
from labeling.projects import lifecycle
from people import members
from people.models import Role
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient as Rating
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client) -> Personas:
    cast = make_personas()
    client.force_login(cast.owner)
    return cast


def told(project: Project, **other: object) -> dict[str, object]:
    """The form as a browser sends it: what is not ticked is not there."""
    kept = {
        name: "" if value is None else value for name, value in model_to_dict(project, SettingsForm.Meta.fields).items()
    }
    return {name: value for name, value in {**kept, **other}.items() if value is not False}


def test_options_are_kept(client: Client, cast: Personas) -> None:
    address = reverse("dashboard:settings", args=[cast.project.slug])
    sent = told(
        cast.project, name="Sums, round 2", asks_reason="on", pay_per_hour="19.20", currency="eur", gold_bar="0.7"
    )
    assert client.post(address, sent).status_code == 302
    cast.project.refresh_from_db()
    kept = cast.project
    assert (kept.name, kept.asks_reason, kept.gold_bar) == ("Sums, round 2", True, 0.7)
    assert (kept.pay_per_hour, kept.currency) == (Decimal("19.20"), "EUR")


def test_every_option_of_a_project_is_offered_and_kept(client: Client, cast: Personas) -> None:
    elsewhere = {"overlap_limit", "lease_seconds"}  # said before they are changed, on the same page
    assert set(SettingsForm.Meta.fields) == lifecycle.CHANGEABLE_SETTINGS - elsewhere
    switches = [field.name for field in Project._meta.fields if isinstance(field, models.BooleanField)]
    address = reverse("dashboard:settings", args=[cast.project.slug])
    page = client.get(address).content.decode()
    assert [name for name in switches if f'name="{name}"' not in page] == []
    sent = told(cast.project, correction_days="3", **dict.fromkeys(switches, "on"))
    assert client.post(address, sent).status_code == 302
    kept = Project.objects.get(pk=cast.project.pk)
    assert [name for name in switches if not getattr(kept, name)] == []
    assert kept.correction_days == 3


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
def test_options_say_what_is_wrong(wrong: dict[str, object], client: Client, cast: Personas) -> None:
    response = client.post(reverse("dashboard:settings", args=[cast.project.slug]), told(cast.project, **wrong))
    assert response.status_code == 422
    assert response.context["form"].errors
    assert "Sums" in response.content.decode()
    cast.project.refresh_from_db()
    assert cast.project.name == "Sums"


def test_reading_is_said_before_it_is_changed(client: Client, cast: Personas) -> None:
    factories.make_entry(factories.make_lane(cast.project), factories.make_trace(cast.project), slots=2)
    address = reverse("dashboard:edit_overlap", args=[cast.project.slug])
    sent = {"overlap": 3, "overlap_limit": 5, "lease_minutes": 30}
    page = client.post(address, sent).content.decode()
    assert "read 3 times" in page
    cast.project.refresh_from_db()
    assert (cast.project.overlap, Job.objects.exists()) == (2, False)
    assert client.post(address, {**sent, "confirmed": "yes"}).status_code == 302
    cast.project.refresh_from_db()
    assert (cast.project.overlap, Job.objects.get().kind) == (3, "labeling.change_overlap")
    assert client.post(address, {**sent, "overlap_limit": 2}).status_code == 422


def test_guideline_is_seen_before_it_is_published(client: Client, cast: Personas) -> None:
    address = reverse("dashboard:guideline", args=[cast.project.slug])
    body = "# Rate\n\nSteps with $x^2$ <script>alert(1)</script>"
    page = client.post(address, {"body": body, "preview": "yes"}).content.decode()
    assert 'data-tex="x^2"' in page
    assert "<script>alert" not in page
    assert not cast.project.guidelines.exists()
    assert client.post(address, {"body": body, "publish": "yes", "changes": "All"}).status_code == 302
    assert cast.project.guidelines.get().changes == "All"
    assert client.post(address, {"body": " "}).status_code == 422
    assert "negative" in client.get(address + "?template=maths").content.decode()
    shown = client.get(reverse("dashboard:guideline_version", args=[cast.project.slug, 1])).content.decode()
    assert 'data-tex="x^2"' in shown


def test_life_goes_its_way(client: Client, cast: Personas) -> None:
    for verb, state in (("pause", "paused"), ("resume", "open"), ("close", "closed"), ("archive", "archived")):
        client.post(reverse(f"dashboard:{verb}_project", args=[cast.project.slug]))
        cast.project.refresh_from_db()
        assert cast.project.state == state
    page = client.post(reverse("dashboard:pause_project", args=[cast.project.slug]), follow=True).content.decode()
    assert "another state" in page


def test_life_says_what_is_under_way_before_anything_changes(client: Client, cast: Personas) -> None:
    rater = factories.make_rater(cast.project)
    Rating(factories.make_assignment(rater, factories.make_trace(cast.project))).rate([1])
    factories.make_assignment(rater, factories.make_trace(cast.project), state="held")
    for address in ("lifecycle", "edit_overlap"):
        sent = {"overlap": 3, "overlap_limit": 5, "lease_minutes": 30}
        url = reverse(f"dashboard:{address}", args=[cast.project.slug])
        answer = client.post(url, sent) if address == "edit_overlap" else client.get(url)
        assert [(kpi["told"], kpi["n"]) for kpi in kpis(answer.content.decode())] == [
            ("In hand", "2"),
            ("Rated in part", "1"),
            ("Fetched ahead", "1"),
            ("Being corrected", "0"),
            ("Waiting", "0"),
        ]
        assert "with 1 person" in answer.content.decode()


def kpis(page: str) -> list[dict[str, str]]:
    found = re.finditer(r"<div><dt>(?P<told>[^<]*)</dt><dd>(?P<n>[^<]*)</dd>", page)
    return [each.groupdict() for each in found]


def test_clone_takes_options_and_guideline_alone(client: Client, cast: Personas) -> None:
    Project.objects.filter(pk=cast.project.pk).update(asks_reason=True, overlap=4)
    client.post(reverse("dashboard:guideline", args=[cast.project.slug]), {"body": "Read.", "publish": "yes"})
    factories.make_trace(cast.project)
    address = reverse("dashboard:create_project_clone", args=[cast.project.slug])
    assert client.post(address, {"name": "Two", "slug": "Next-Door"}).status_code == 422
    assert client.post(address, {"name": "Two", "slug": "two"}).status_code == 302
    made = Project.objects.get(slug="two")
    assert (made.asks_reason, made.overlap, made.traces.count()) == (True, 4, 0)
    assert made.guideline is not None
    assert made.guideline.body == "Read."
    assert members.get_membership(project=made, user=cast.owner).role == Role.OWNER
