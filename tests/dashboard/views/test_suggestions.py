"""The page of suggestions, as pages and as a program see it."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from labeling.models import Exposure, SuggestionPlan
from labeling.projects import suggestions
from tests import factories
from tests.api import api_clients
from tests.labeling import suggested_project
from tests.machines import machine_labels
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


def test_lead_turns_suggestions_on_and_off(personas: LoggedInPersonas) -> None:
    project, client = personas.cast.project, personas.client("lead")
    machine = factories.make_machine_rater(project)
    machine_labels.label_by_machine(machine, {factories.make_trace(project): None})
    page = reverse("dashboard:suggestions", args=[project.slug])
    assert b"data-plan" not in client.get(page).content
    start = reverse("dashboard:start_suggestions", args=[project.slug])
    shares = {"machine": str(machine.pk), "reveal_share": "0.2", "suggest_share": "0.3"}
    assert client.post(start, {**shares, "suggest_share": "0.8"}).status_code == 422
    assert client.post(start, shares).status_code == 302
    plan = SuggestionPlan.objects.get()
    assert (plan.machine, plan.reveal_share, plan.suggest_share, plan.began_by) == (
        machine,
        0.2,
        0.3,
        personas.cast.lead,
    )
    shown = client.get(page).content.decode()
    assert all(mark in shown for mark in ('data-plan="active"', 'data-arm="suggest"', 'data-arm="reveal"'))
    assert shown.count("data-effect=") == 8
    assert client.post(reverse("dashboard:stop_suggestions", args=[project.slug])).status_code == 302
    assert 'data-plan="lead"' in client.get(page).content.decode()


def test_page_shows_effects_of_submissions(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    plan = suggested_project.start(project, suggest=0.5)
    for _ in range(3):
        trace = factories.make_trace(project)
        machine_labels.make_hidden_gold(trace, None)
        for arm in ("blind", "suggest"):
            rater = suggested_project.find_rater(plan, trace, arm)
            assignment = suggested_project.assign(plan, rater, trace, 0, purpose="gold")
            suggested_project.submit(assignment, [-1] if arm == "suggest" else [1, 1, 1])
    assert Exposure.objects.count() == 6
    page = personas.client("viewer").get(reverse("dashboard:suggestions", args=[project.slug]))
    assert 'data-decisions="3"' in page.content.decode()
    follow = page.context["arms"][0][1][0]
    assert (follow.name, follow.n, follow.n_blind, follow.effect.value) == ("follow", 3, 3, 1)


@pytest.mark.fault
def test_page_shows_each_earlier_setting_apart(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    earlier = suggested_project.start(project, suggest=0.5)
    trace = factories.make_trace(project)
    rater = suggested_project.find_rater(earlier, trace, "suggest")
    suggested_project.submit(suggested_project.assign(earlier, rater, trace, 0), [-1])
    latest = suggested_project.start(project, reveal=0.3)
    page = reverse("dashboard:suggestions", args=[project.slug])
    client = personas.client("viewer")
    assert [(row.plan, row.counts["suggest"], row.counts["blind"]) for row in client.get(page).context["plans"]] == [
        (latest, 0, 0),
        (earlier, 1, 0),
    ]
    shown = client.get(page, {"plan": earlier.pk})
    assert shown.context["plan"] == earlier
    assert [(arm.arm, arm.n) for arm, _rows in shown.context["arms"]] == [("suggest", 1)]
    assert [arm.n for arm, _rows in client.get(page).context["arms"]] == [0]
    for unknown in ("0", "x", str(suggested_project.start(factories.make_project(), reveal=0.3).pk)):
        assert client.get(page, {"plan": unknown}).status_code == 404
    url = reverse("api:suggestions", args=[project.slug])
    program = api_clients.make_client(personas.cast.engineer)
    assert program.get(url).json()["plans"] == [latest.pk, earlier.pk]
    assert program.get(url, {"plan": earlier.pk}).json()["arms"][0]["n"] == 1
    assert program.get(url, {"plan": "x"}).status_code == 422


def test_page_of_a_submission_names_its_arm(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    plan = suggested_project.start(project, reveal=0.9)
    trace = factories.make_trace(project)
    rater = suggested_project.find_rater(plan, trace, "reveal")
    assignment = suggested_project.assign(plan, rater, trace, 0)
    suggested_project.reveal_and_change(assignment, 0, 1, -1)
    url = reverse("dashboard:submission", args=[project.slug, assignment.pk])
    for revision, shown in ((1, b'data-exposure="reveal"'), (2, b'data-exposure="reveal"')):
        assert shown in personas.client("lead").get(url, {"revision": revision}).content


def test_program_sets_and_reads_suggestions(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    machine = factories.make_machine_rater(project)
    engineer, lead = (api_clients.make_client(getattr(personas.cast, name)) for name in ("engineer", "lead"))
    url = reverse("api:suggestions", args=[project.slug])
    assert engineer.get(url).status_code == 404
    body = {"machine": machine.pk, "reveal_share": 0.5, "suggest_share": 0.0}
    assert engineer.put(url, json.dumps(body), content_type="application/json").status_code == 403
    assert lead.put(url, json.dumps({**body, "suggest_share": 0.6}), content_type="application/json").status_code == 422
    made = lead.put(url, json.dumps(body), content_type="application/json").json()
    assert (made["machine"], made["ended_because"], [arm["arm"] for arm in made["arms"]]) == (
        machine.machine,
        "",
        ["reveal"],
    )
    assert lead.delete(url).status_code == 204
    assert engineer.get(url).json()["ended_because"] == "lead"


def test_command_sets_and_prints_suggestions() -> None:
    project = factories.make_project()
    factories.make_machine_rater(project, "judge: critic 1")
    with pytest.raises(CommandError):
        call_command("machine_rater", "effects", "--project", project.slug)
    call_command("machine_rater", "suggest", "--project", project.slug, "--machine", "judge: critic")
    with pytest.raises(CommandError):
        call_command(
            "machine_rater", "suggest", "--project", project.slug, "--machine", "judge", "--reveal-share", "0.9"
        )
    out = StringIO()
    call_command("machine_rater", "effects", "--project", project.slug, stdout=out)
    assert [arm["n"] for arm in json.loads(out.getvalue())["arms"]] == [0, 0]
    call_command("machine_rater", "suggest", "--project", project.slug, "--off")
    plan = suggestions.find_plan(project.pk)
    assert plan is not None
    assert plan.ended_because == "lead"
