"""Withdrawals and imports make statistics stale."""

import pytest

from labeling.models import ProjectStats
from labeling.quality import project_stats, resolve
from labeling.quality.adjudication import withdraw_traces
from labeling.quality.project_stats import UNSEEN_INTERVAL, load_project_stats, mark_existing_stats_stale
from tests import factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
LATER = NOW + UNSEEN_INTERVAL


@pytest.mark.fault
def test_withdrawal_makes_statistics_stale() -> None:
    project = submitted_work.project_with_two_submissions()
    submitted_work.refresh_quality(now=NOW)
    trace = project.traces.earliest("pk")
    withdraw_traces(project=project, trace_ids=[trace.pk], reason="broken", by=None, now=NOW)
    submitted_work.refresh_quality(now=LATER)
    shown = load_project_stats(project_id=project.pk)
    assert shown is not None
    assert (shown.computed_at, shown.content["headline"]["n_traces"]) == (LATER, 11)


@pytest.mark.fault
def test_withdrawal_during_the_first_computation_makes_statistics_stale() -> None:
    project = submitted_work.project_with_two_submissions()
    resolve.resolve_due_traces(now=NOW)
    assert project_stats.claim_computation(project_id=project.pk, now=NOW)
    withdraw_traces(project=project, trace_ids=[project.traces.earliest("pk").pk], reason="broken", by=None, now=NOW)
    assert ProjectStats.objects.get().is_stale


def test_project_without_submissions_is_not_marked_stale() -> None:
    project = factories.make_project()
    mark_existing_stats_stale(project_id=project.pk, now=NOW)
    assert not ProjectStats.objects.exists()
    assert project_stats.find_stale_projects(now=NOW) == []
