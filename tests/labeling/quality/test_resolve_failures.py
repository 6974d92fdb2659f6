"""Background refresh: failing traces and projects do not block others."""

import datetime as dt

import pytest

from labeling.models import AgreementTally, Assignment, DailyProjectStats, Project, ProjectStats, Settlement, Trace
from labeling.quality import project_stats, resolve
from labeling.quality.project_stats import list_daily_stats, load_project_stats
from labeling.quality.settlements import mark_unsettled_due
from tests import factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
LATER = NOW + project_stats.UNSEEN_INTERVAL
LONG = dt.timedelta(hours=1)


@pytest.fixture
def project(kept_project: int) -> Project:
    return Project.objects.get(pk=kept_project)


@pytest.mark.fault
def test_refresh_waits_between_two_rounds(project: Project) -> None:
    submitted_work.refresh_quality(now=NOW)
    trace = factories.make_trace(project)
    submitted_work.submit_trace(factories.make_rater(project), trace, [-1])
    submitted_work.refresh_quality(now=LATER - dt.timedelta(seconds=1))
    assert ProjectStats.objects.get().is_stale
    submitted_work.refresh_quality(now=LATER)
    row = ProjectStats.objects.get()
    assert (row.is_stale, row.computed_at, row.content["headline"]["n_traces"]) == (False, LATER, 13)
    assert DailyProjectStats.objects.get().content["n_traces"] == 13
    assert [each.day for each in list_daily_stats(project_id=project.pk)] == [NOW.date()]


@pytest.mark.fault
def test_statistics_that_someone_looks_at_are_refreshed_soon(project: Project) -> None:
    submitted_work.refresh_quality(now=NOW)
    ProjectStats.objects.update(took_ms=0)  # also on a slow machine
    soon = NOW + project_stats.AWAITED_INTERVAL
    project_stats.await_stats(stats=load_project_stats(project_id=project.pk), now=NOW)
    assert not ProjectStats.objects.get().is_awaited  # they are current
    submit_more(project)
    assert project_stats.find_stale_projects(now=soon) == []
    project_stats.await_stats(stats=load_project_stats(project_id=project.pk), now=NOW)
    assert project_stats.find_stale_projects(now=soon - dt.timedelta(seconds=1)) == []
    assert project_stats.find_stale_projects(now=soon) == [project.pk]
    project_stats.refresh_project_stats(project_id=project.pk, now=soon)
    submit_more(project)
    assert project_stats.find_stale_projects(now=soon + project_stats.AWAITED_INTERVAL) == []


def test_statistics_are_refreshed_soon_after_an_act_of_a_person(project: Project) -> None:
    submitted_work.refresh_quality(now=NOW)
    ProjectStats.objects.update(took_ms=0)
    project_stats.mark_stats_stale(project_id=project.pk, now=NOW)
    assert project_stats.find_stale_projects(now=NOW + project_stats.AWAITED_INTERVAL) == [project.pk]


def submit_more(project: Project) -> None:
    submitted_work.submit_trace(factories.make_rater(project), factories.make_trace(project), [-1])
    resolve.resolve_due_traces(now=NOW)


def test_long_computation_rests_longer(project: Project) -> None:
    submitted_work.refresh_quality(now=NOW)
    project_stats.mark_stats_stale(project_id=project.pk, now=NOW)
    ProjectStats.objects.update(took_ms=120_000)
    assert project_stats.find_stale_projects(now=LATER) == []
    assert project_stats.find_stale_projects(now=NOW + dt.timedelta(minutes=10)) == [project.pk]


def test_mark_unsettled_due_marks_only_unsettled_traces(project: Project) -> None:
    resolve.resolve_due_traces(now=NOW)
    Settlement.objects.filter(state="asked").update(state="contested")
    waiting = Settlement.objects.filter(state="contested").count()
    assert waiting
    assert mark_unsettled_due(project_id=project.pk, now=NOW) == waiting
    assert Settlement.objects.filter(is_due=True).count() == waiting


def test_failing_trace_does_not_block_others(project: Project) -> None:
    broken, *others = Trace.objects.filter(project=project).order_by("pk")
    Assignment.objects.filter(trace=broken).update(submitted_revision=2, revision=2)  # a revision that is nowhere
    resolve.resolve_due_traces(now=NOW)
    assert list(Settlement.objects.filter(is_due=True).values_list("pk", flat=True)) == [broken.pk]
    assert Settlement.objects.filter(is_due=False).count() == len(others)


def test_many_failing_traces_do_not_block_others(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "CHUNK", 2)
    broken = list(Trace.objects.filter(project=project).order_by("pk").values_list("pk", flat=True)[:8])
    Assignment.objects.filter(trace__in=broken).update(submitted_revision=2, revision=2)  # a revision that is nowhere
    at = NOW
    for _ in range(3):  # rounds of six traces: the twelve that exist, and the first of those to retry
        resolve.resolve_due_traces(now=at, limit=6)
        at += dt.timedelta(seconds=3)
    assert set(Settlement.objects.filter(is_due=True).values_list("pk", flat=True)) == set(broken)
    failures = Settlement.objects.filter(pk__in=broken).values_list("n_failures", flat=True)
    assert set(failures) == {1, 2}
    Assignment.objects.filter(trace__in=broken).update(submitted_revision=1, revision=1)
    resolve.resolve_due_traces(now=at, limit=6)
    assert Settlement.objects.filter(is_due=True).exists()  # their time has not come
    resolve.resolve_due_traces(now=at + dt.timedelta(hours=1), limit=100)
    assert not Settlement.objects.filter(is_due=True).exists()
    assert not Settlement.objects.exclude(n_failures=0, retry_at=None).exists()


def test_every_project_gets_its_share_of_a_round(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "CHUNK", 2)
    small = factories.make_project()
    trace = factories.make_trace(small)
    submitted_work.submit_trace(factories.make_rater(small), trace, [1, 1, 1])
    found = resolve.find_due_traces(now=NOW, limit=1)
    assert [pk for pk, _ in found] == [project.pk, small.pk]  # two of one project's many, then the other project's
    resolve.resolve_due_traces(now=NOW, limit=1)
    assert not Settlement.objects.filter(project=small, is_due=True).exists()
    assert Settlement.objects.filter(project=project, is_due=True).exists()


def test_failing_project_does_not_block_others(project: Project) -> None:
    AgreementTally.objects.filter(project=project).update(first_end=99)  # past the end of its trace
    other = factories.make_project()
    submitted_work.submit_trace(factories.make_rater(other), factories.make_trace(other), [1, 1, 1])
    submitted_work.refresh_quality(now=NOW)
    assert load_project_stats(project_id=other.pk) is not None
    assert load_project_stats(project_id=project.pk) is None
    assert project_stats.find_stale_projects(now=NOW + dt.timedelta(minutes=1)) == []  # not every three seconds
    assert project.pk in project_stats.find_stale_projects(now=NOW + 2 * project_stats.LOST_AFTER)


def test_one_of_several_callers_claims_the_computation(project: Project) -> None:
    resolve.resolve_due_traces(now=NOW)
    assert project_stats.claim_computation(project_id=project.pk, now=NOW)
    later = NOW + dt.timedelta(seconds=30)
    assert not project_stats.claim_computation(project_id=project.pk, now=later)
    project_stats.mark_stats_stale(project_id=project.pk, now=later)  # a submit during the computation
    assert project.pk not in project_stats.find_stale_projects(now=later)
    project_stats.refresh_project_stats(project_id=project.pk, now=later)
    assert load_project_stats(project_id=project.pk) is None
    project_stats.compute_project_stats(project_id=project.pk, now=NOW)


@pytest.mark.fault
def test_computation_of_a_killed_worker_is_taken_over(project: Project) -> None:
    resolve.resolve_due_traces(now=NOW)
    assert project_stats.claim_computation(project_id=project.pk, now=NOW)
    late = NOW + project_stats.LOST_AFTER + dt.timedelta(seconds=1)
    assert project_stats.find_stale_projects(now=late) == [project.pk]
    project_stats.refresh_project_stats(project_id=project.pk, now=late)
    project_stats.compute_project_stats(project_id=project.pk, now=NOW)  # a slow computation ends too late
    shown = load_project_stats(project_id=project.pk)
    assert shown is not None
    assert (shown.computed_at, ProjectStats.objects.get().began_at) == (late, None)
    assert project_stats.find_stale_projects(now=late + LONG) == []
