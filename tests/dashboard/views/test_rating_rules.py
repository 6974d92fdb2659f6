"""Leads write short rules and kinds of errors, and annotators see them beside the trace."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Project
from labeling.projects import rating_rules
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
DATA = {
    "negative": " Breaks a\nrule. ",
    "neutral": "Idle.",
    "positive": "Right.",
    "kinds": "Wrong tool\n\nOther\nWrong tool",
}


@pytest.fixture
def cast(client: Client, personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    client.force_login(cast.lead)
    return cast


def rules_url(cast: Personas) -> str:
    return reverse("dashboard:rating_rules", args=[cast.project.slug])


@pytest.mark.fault
def test_saved_rules_are_on_the_work_page(client: Client, cast: Personas) -> None:
    assert client.post(rules_url(cast), DATA).status_code == 302
    stored = Project.objects.get(pk=cast.project.pk).rating_rules
    assert stored["negative"] == "Breaks a rule."
    assert stored["kinds"] == [["tool", "Wrong tool"], ["other", "Other"]]  # codes of the templates
    client.force_login(cast.annotator)
    for page in (
        reverse("annotate:work", args=[cast.project.slug]),
        reverse("annotate:guide", args=[cast.project.slug]),
    ):
        assert "Breaks a rule." in client.get(page).content.decode()


def test_template_fills_the_form_and_saves_nothing(client: Client, cast: Personas) -> None:
    form = client.get(rules_url(cast), {"template": "policy"}).context["form"]
    assert form.initial["negative"] == rating_rules.RULES_TEMPLATES["policy"].rules.negative
    assert client.get(rules_url(cast), {"template": "x"}).status_code == 200
    assert Project.objects.get(pk=cast.project.pk).rating_rules == {}


@pytest.mark.parametrize(
    "wrong", [{"negative": " "}, {"kinds": "\n "}, {"kinds": "x" * 61}, {"kinds": "\n".join(map(str, range(13)))}]
)
def test_odd_rules_are_refused(wrong: dict[str, str], client: Client, cast: Personas) -> None:
    assert client.post(rules_url(cast), {**DATA, **wrong}).status_code == 422


def test_members_who_read_settings_cannot_save(client: Client, cast: Personas) -> None:
    client.force_login(cast.reviewer)
    assert all(field.disabled for field in client.get(rules_url(cast)).context["form"].fields.values())
    assert client.post(rules_url(cast), DATA).status_code == 403


def test_new_project_starts_with_the_chosen_rules(client: Client, cast: Personas) -> None:
    data = {"name": "N", "slug": "n", "protocol": "every_step", "overlap": 2}
    client.post(reverse("dashboard:new_project"), {**data, "rules": "agents"})
    assert rating_rules.load_rating_rules(Project.objects.get(slug="n")).kinds[0].code == "tool"
    client.post(reverse("dashboard:new_project"), {**data, "slug": "m"})
    assert Project.objects.get(slug="m").rating_rules == {}  # the first import chooses


def test_hints_and_own_severities_are_shown_to_annotators(client: Client, cast: Personas) -> None:
    Project.objects.filter(pk=cast.project.pk).update(asks_error_category=True, asks_severity=True)
    data = {**DATA, "kinds": "Wrong tool | Another one fits.\nOther", "severities": "Minor\nMajor\nFatal"}
    assert client.post(rules_url(cast), data).status_code == 302
    stored = Project.objects.get(pk=cast.project.pk).rating_rules
    assert stored["kinds"] == [["tool", "Wrong tool", "Another one fits."], ["other", "Other"]]
    assert stored["severities"] == ["Minor", "Major", "Fatal"]
    form = client.get(rules_url(cast)).context["form"]
    assert (form.initial["kinds"], form.initial["severities"]) == (data["kinds"], data["severities"])
    client.force_login(cast.annotator)
    work = client.get(reverse("annotate:work", args=[cast.project.slug])).content.decode()
    guide = client.get(reverse("annotate:guide", args=[cast.project.slug])).content.decode()
    assert all("Another one fits." in page and "Fatal" in page for page in (work, guide))


@pytest.mark.parametrize(
    "wrong",
    [{"severities": "a\nb"}, {"severities": "a\na\nb"}, {"kinds": f"a | {'x' * 201}"}, {"kinds": " | hint"}],
)
def test_odd_hints_and_severities_are_refused(wrong: dict[str, str], client: Client, cast: Personas) -> None:
    assert client.post(rules_url(cast), {**DATA, **wrong}).status_code == 422
