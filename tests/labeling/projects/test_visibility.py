"""Visibility conditions: drawn with the claim, and nothing hidden is shown or rated."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from annotate import work_page
from labeling import assignments, queue
from labeling.assignments.errors import EditRefused
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Project, StoredImage, VisibilityDraw, VisibilityPlan
from labeling.projects import suggestions, visibility
from labeling.projects.visibility import VisibilityRefused
from labeling.quality import submitted_reports
from labeling.queue import exposures
from tests import factories
from tests.labeling import suggested_project, watched_project
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.queue.queues import GOLD, UNIFORM, fill_lane

pytestmark = pytest.mark.django_db

HIDDEN = {
    "reasoning": ("text-action", "text-observation", "part-call"),
    "actions": ("text-reasoning", "text-action", "part-thought"),
    "both": (),
}
SHOWN = {
    "reasoning": ("text-user", "text-reasoning-1", "text-reasoning-4", "part-thought"),
    "actions": ("text-user", "text-observation", "part-call"),
    "both": ("text-user", "text-reasoning-1", "part-thought", "part-call", "text-observation"),
}


def claim_trace(project: Project, condition: str) -> Assignment:
    trace = watched_project.make_agent_trace(project)
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace.pk], slots=9, now=factories.NOW)
    rater = watched_project.find_rater(project, trace, condition)
    claim = queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=UNIFORM)
    return Assignment.objects.get(pk=claim.assignment_id)


@pytest.mark.parametrize("condition", HIDDEN)
def test_hidden_text_never_reaches_the_browser(condition: str) -> None:
    project = factories.make_project(protocol="every_step")
    plan = watched_project.start(project)
    assignment = claim_trace(project, condition)
    draw = VisibilityDraw.objects.get()
    assert (draw.assignment_id, draw.plan_id, draw.condition) == (assignment.pk, plan.pk, condition)
    assert draw.probability == pytest.approx({"reasoning": 0.3, "actions": 0.3, "both": 0.4}[condition])
    trace = work_page.build_trace(assignment.pk)
    texts = [json.dumps(trace, default=str)]
    client = WorkPageClient(assignment)
    rateable = [step["position"] for step in trace["steps"] if step["is_rateable"]]
    client.send(*(client.write(step) for step in rateable))
    assignments.submit(**client.place, now=factories.NOW, by=assignment.rater.user)
    browser = Client()
    assert assignment.rater.user is not None
    browser.force_login(assignment.rater.user)
    texts.append(browser.get(reverse("annotate:submitted_one", args=[assignment.pk])).content.decode())
    for text in texts:
        assert [mark for mark in HIDDEN[condition] if mark in text] == []
        assert [mark for mark in SHOWN[condition] if mark not in text] == []
    image = reverse("annotate:image", args=[StoredImage.objects.get().digest])
    assert browser.get(image).status_code == (404 if condition == "reasoning" else 200)
    [report] = submitted_reports.load_revision_reports([(assignment.pk, 1)])
    assert report.is_censored == (condition != "both")
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    [[row]] = manifest.read_row_chunks(frozen, chunk=3, has_names=True)
    assert row.facts.exposure == (None if condition == "both" else f"{condition}_only")


@pytest.mark.parametrize(("condition", "hidden"), [("reasoning", 2), ("actions", 1)])
def test_hidden_steps_take_no_rating(condition: str, hidden: int) -> None:
    project = factories.make_project()
    watched_project.start(project)
    client = WorkPageClient(claim_trace(project, condition))
    with pytest.raises(EditRefused):
        client.send(client.write(hidden))


def test_draws_can_be_repeated_and_have_their_shares() -> None:
    project = factories.make_project(open_limit=99)
    plan = watched_project.start(project, reasoning=0.5, actions=0.2)
    traces = [watched_project.make_agent_trace(project).pk for _ in range(25)]
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=traces, slots=9, now=factories.NOW)
    rater = factories.make_rater(project)
    for _ in traces:
        queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=UNIFORM)
    for trace, condition in VisibilityDraw.objects.values_list("assignment__trace", "condition"):
        number = exposures.draw_number(plan.seed, rater.pk, trace)
        assert condition == ("reasoning" if number < 0.5 else "actions" if number < 0.7 else "both")
    assert len(set(VisibilityDraw.objects.values_list("condition", flat=True))) == 3


def test_gold_and_traces_of_one_kind_show_everything() -> None:
    project = factories.make_project()
    watched_project.start(project, reasoning=0.9, actions=0.0)
    fill_lane(project, 1, arm="gold")
    queue.enqueue(
        project_id=project.pk,
        arm="uniform",
        trace_ids=[factories.make_trace(project).pk],
        slots=1,
        now=factories.NOW,
    )
    rater = factories.make_rater(project)
    for chance in (GOLD, UNIFORM):
        queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=chance)
    assert rater.assignments.count() == 2
    assert not VisibilityDraw.objects.exists()


def test_a_trace_held_again_is_drawn_again() -> None:
    project = factories.make_project()
    watched_project.start(project)
    trace = watched_project.make_agent_trace(project)
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace.pk], slots=1, now=factories.NOW)
    rater = factories.make_rater(project)
    for _ in range(2):
        claim = queue.claim_trace(rater_id=rater.pk, now=factories.NOW, chance=UNIFORM)
        queue.release_assignment(assignment_id=claim.assignment_id, now=factories.NOW, reason="later", by=None)
    assert VisibilityDraw.objects.count() == 1


@pytest.mark.parametrize(("reasoning", "actions"), [(0.5, 0.5), (0.0, 0.0), (-0.1, 0.5)])
def test_impossible_shares_are_refused(reasoning: float, actions: float) -> None:
    with pytest.raises(VisibilityRefused):
        watched_project.start(factories.make_project(), reasoning=reasoning, actions=actions)


def test_conditions_and_suggestions_exclude_each_other() -> None:
    project = factories.make_project()
    plan = watched_project.start(project)
    with pytest.raises(suggestions.SuggestionsRefused):
        suggested_project.start(project, suggest=0.5)
    watched_project.start(project, reasoning=0.1)
    assert VisibilityPlan.objects.active().count() == 1
    assert not visibility.stop_visibility(plan=plan, by=None, now=factories.NOW)
    assert visibility.stop_visibility(plan=VisibilityPlan.objects.active().get(), by=None, now=factories.NOW)
    suggested_project.start(project, suggest=0.5)
    with pytest.raises(VisibilityRefused):
        watched_project.start(project)
