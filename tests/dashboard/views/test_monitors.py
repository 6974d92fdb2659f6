"""The page of monitors, as people and as a program see it."""

import json

import pytest
from django.urls import reverse

from labeling.models import Provenance, Trace, VisibilityPlan
from tests import factories
from tests.api import api_clients
from tests.labeling import watched_project
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


def test_lead_turns_conditions_on_and_off(personas: LoggedInPersonas) -> None:
    project, client = personas.cast.project, personas.client("lead")
    page = reverse("dashboard:monitors", args=[project.slug])
    assert b"data-plan" not in client.get(page).content
    start = reverse("dashboard:start_conditions", args=[project.slug])
    assert client.post(start, {"reasoning_share": "0.6", "actions_share": "0.6"}).status_code == 422
    assert client.post(start, {"reasoning_share": "0.4", "actions_share": "0.3"}).status_code == 302
    plan = VisibilityPlan.objects.get()
    assert (plan.reasoning_share, plan.actions_share, plan.began_by) == (0.4, 0.3, personas.cast.lead)
    assert 'data-plan="active"' in client.get(page).content.decode()
    assert client.post(reverse("dashboard:stop_conditions", args=[project.slug])).status_code == 302
    assert 'data-plan="ended"' in client.get(page).content.decode()


def test_page_and_program_show_the_same_figures(personas: LoggedInPersonas) -> None:
    project = watched_project.make_project(personas.cast.project)
    watched_project.start(project)
    machine = factories.make_machine_rater(project)
    for place, trace in enumerate(watched_project.make_pairs(project, 5)):
        watched_project.answer(factories.make_rater(project), trace, "yes" if place < 5 else "no", "actions")
        watched_project.answer(machine, trace, "no")
    page, url = (reverse(f"{name}:monitors", args=[project.slug]) for name in ("dashboard", "api"))
    shown = personas.client("viewer").get(page).content.decode()
    assert 'data-monitor="people" data-condition="actions"' in shown
    assert f'data-monitor="{machine.machine}" data-condition="both"' in shown
    assert 'data-value="1.00"' in shown
    found = api_clients.make_client(personas.cast.engineer).get(url).json()
    assert found["conditions"]["reasoning_share"] == 0.3
    assert (found["question"], found["yes"], found["truth"]) == ("hint", "yes", "pair")
    assert [(row["machine"], row["condition"], row["figures"]["g_mean2"]) for row in found["monitors"]] == [
        ("", "actions", 1.0),
        (machine.machine, "both", 0.0),
    ]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"verdict": "hint=no", "truth": "wrong"}, 200),
        ({"verdict": "hint=no", "truth": "metadata"}, 422),
        ({"verdict": "other=no", "truth": "pair"}, 422),
    ],
)
def test_address_chooses_what_is_compared(personas: LoggedInPersonas, query: dict[str, str], status: int) -> None:
    project = watched_project.make_project(personas.cast.project)
    page = personas.client("lead").get(reverse("dashboard:monitors", args=[project.slug]), query)
    assert page.status_code == status
    assert (page.context["query"] is not None) == (status == 200)


def test_program_sets_conditions(personas: LoggedInPersonas) -> None:
    url = reverse("api:monitors", args=[personas.cast.project.slug])
    engineer, lead = (api_clients.make_client(getattr(personas.cast, name)) for name in ("engineer", "lead"))
    assert engineer.get(url).json() == {"conditions": None, "monitors": []}
    body = {"reasoning_share": 0.5, "actions_share": 0.2}
    assert engineer.put(url, json.dumps(body), content_type="application/json").status_code == 403
    too_much = json.dumps({**body, "actions_share": 0.5})
    assert lead.put(url, too_much, content_type="application/json").status_code == 422
    made = lead.put(url, json.dumps(body), content_type="application/json").json()["conditions"]
    assert (made["reasoning_share"], made["both_share"], made["ended_at"]) == (0.5, pytest.approx(0.3), None)
    assert lead.get(url, {"question": "hint"}).status_code == 200
    assert lead.delete(url).status_code == 204
    assert engineer.get(url).json()["conditions"]["ended_at"]


def test_pages_of_trace_and_submission_name_pair_and_condition(personas: LoggedInPersonas) -> None:
    project = watched_project.make_project(personas.cast.project)
    watched_project.start(project)
    trace = watched_project.make_pairs(project, 1)[0]
    provenance = Provenance.objects.create(project=project, digest="x", reasoning="summarised", reasoning_by="a model")
    Trace.objects.filter(pk=trace.pk).update(provenance=provenance)
    rater = factories.make_rater(project)
    watched_project.answer(rater, trace, "yes", "actions")
    client = personas.client("lead")
    shown = client.get(reverse("dashboard:trace", args=[project.slug, trace.pk])).content.decode()
    assert 'data-fact="pair"' in shown
    assert 'data-fact="reasoning"' in shown
    submission = reverse("dashboard:submission", args=[project.slug, rater.assignments.get().pk])
    assert b'data-condition="actions"' in client.get(submission).content
