"""Imported labels on the pages of leads: counted, and never "nothing"."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Project, Trace
from labeling.models.gold import GoldUse
from labeling.quality import project_stats
from labeling.quality.gold import enqueue_gold, make_gold
from people import members
from people.models import Role
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.quality import submitted_work
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(client: Client) -> Project:
    """Two labels of one trace, one of another; the overlap is two."""
    project = factories.make_project(reserve_problem_share=0.0)
    lead = factories.make_user("lead")
    members.add_member(project=project, user=lead, role=Role.LEAD, now=factories.NOW)
    client.force_login(lead)
    load_lines(
        project,
        prm.make_line(problem="Twice?", labeler="ann"),
        prm.make_line(problem="Twice?", labeler="ben"),
        prm.make_line(problem="Once?", labeler="ann"),
    )
    project_stats.mark_stats_stale(project_id=project.pk, now=factories.NOW)
    submitted_work.refresh_quality(now=factories.NOW)
    return project


def test_overview_and_home_count_them(client: Client, project: Project) -> None:
    response = client.get(reverse("dashboard:overview", args=[project.slug]))
    assert response.context["overview"]["exact"].n == 1
    page = response.content.decode()
    assert 'data-empty="overview"' not in page
    assert 'data-population="imported"' in page
    assert project_stats.list_daily_stats(project_id=project.pk).get().content["mix"] == {"-1": 3, "0": 0, "1": 3}
    managed = client.get(reverse("annotate:home")).context["managed"]
    assert [(each.settled, each.total) for each in managed] == [(1, 2)]


def test_trace_list_and_trace_count_them(client: Client, project: Project) -> None:
    traces = reverse("dashboard:traces", args=[project.slug])
    rows = client.get(traces).context["traces"]
    assert {row.trace.problem.text: row.n_labels for row in rows} == {"Twice?": 2, "Once?": 1}
    assert not client.get(traces, {"state": "unread"}).context["traces"]
    once = Trace.objects.get(problem__text="Once?")
    response = client.get(reverse("dashboard:trace", args=[project.slug, once.pk]))
    assert [each.what for each in response.context["history"]]
    assert "1" in response.context["trace_state"].why


def test_machine_labels_are_counted_apart(client: Client, project: Project) -> None:
    once = Trace.objects.get(problem__text="Once?")
    factories.make_submitted(factories.make_machine_rater(project), once, origin="imported")
    rows = client.get(reverse("dashboard:traces", args=[project.slug])).context["traces"]
    (row,) = [row for row in rows if row.trace == once]
    assert (row.n_labels, row.n_machine_labels) == (1, 1)


def test_screening_shows_no_number_of_assignments(client: Client, project: Project) -> None:
    trace = factories.make_trace(project)
    make_gold(trace=trace, use=GoldUse.SCREENING, accepted_first_errors=[None], by=None, now=factories.NOW)
    enqueue_gold(project_id=project.pk, use=GoldUse.SCREENING, trace_ids=[trace.pk], now=factories.NOW)
    page = client.get(reverse("dashboard:trace", args=[project.slug, trace.pk])).content.decode()
    assert "data-unlimited" in page
    assert "30000" not in page
