"""Scoring in shards, with external scorers, failures and pushed scores."""

import datetime as dt
import json

import pytest
from django.core.cache import cache
from pytest_django import DjangoAssertNumQueries

from jobs.models import Job, JobState
from labeling.models import Project, QueueEntry, TraceDraw
from prm import generations, labeled_traces, registry, scores
from prm.backends import features
from prm.models import PRM, Score
from prm.models.generation import Stage
from prm.registry import PRMIdentity
from tests import factories
from tests.prm import generation_project
from tests.prm.backends import scorer_servers

pytestmark = pytest.mark.django_db


def make_project(n: int = 12) -> Project:
    project = factories.make_project()
    generation_project.import_records(project, labeled=0, unread=n)
    return project


def register(project: Project, address: str, model: str = "m") -> PRM:
    identity = PRMIdentity("vllm", model, address=address, options={"timeout": 20})
    return registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)


@pytest.mark.fault
def test_shards_score_every_trace_once_and_the_last_one_requests_the_selection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generations, "TRACES_A_SHARD", 40)
    project = generation_project.make_project(labeled=80, unread=40)
    generation = generation_project.run_generation(project)
    kinds = [job.kind for job in generations.jobs_of_generation(generation)]
    assert kinds == [generations.TRAIN, *[generations.SCORE] * 3, generations.SELECT]
    assert Score.objects.filter(prm=generation.candidate).count() == 120
    assert generation.stage == Stage.DONE


def test_only_unscored_traces_are_scored() -> None:
    fake = scorer_servers.FakeVllmServer()
    with scorer_servers.running_scorer(fake) as address:
        project = make_project(6)
        prm = register(project, address)
        registry.make_current(prm=prm, by=None, now=factories.NOW)
        scores.request_scoring(prm=prm, by=None, now=factories.NOW)
        generation_project.run_jobs()
        assert scores.count_fresh_scores(project).n_stale == 0
        n_requests = len(fake.requests)
        assert scores.request_scoring(prm=prm, by=None, now=factories.NOW) == []
        generation_project.import_records(project, labeled=0, unread=2, seed=7)
        assert scores.count_fresh_scores(project).n_stale == 2
        scores.request_scoring(prm=prm, by=None, now=factories.NOW)
        generation_project.run_jobs()
    assert len(fake.requests) == n_requests + 1
    assert len(fake.requests[-1]["input"]) == 2


@pytest.mark.fault
def test_chunk_has_fewer_traces_if_they_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk must fit into its lease, which is short for the builtin PRM."""
    monkeypatch.setattr(scores, "MAX_STEPS", 7)
    project = generation_project.make_project(labeled=40, unread=10)
    generations.start_generation(project=project, by=None, now=factories.NOW)
    generation_project.run_jobs()
    job = Job.objects.get(kind=generations.SCORE)
    prm = registry.current_prm(project.pk)
    assert prm is not None
    assert scores.count_fresh_scores(project).n_stale == 0
    Score.objects.all().delete()
    job.done, job.checkpoint = 0, {}
    written = [each(factories.NOW) for each in scores.run_scoring_job(job) if callable(each)][:-1]
    sizes = [after.done - before for after, before in zip(written, [0, *(each.done for each in written)], strict=False)]
    assert sum(sizes) == 50
    assert 1 <= max(sizes) <= 3
    external = scores.request_scoring(prm=register(project, "http://127.0.0.1:1"), by=None, now=factories.NOW)[0]
    assert scores.lease_of_job(job.pk) < dt.timedelta(minutes=1) < scores.lease_of_job(external.pk)


def test_fresh_scores_of_large_projects_are_counted_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    project = make_project(3)
    prm = register(project, "http://127.0.0.1:1")
    registry.make_current(prm=prm, by=None, now=factories.NOW)
    scores.cached_freshness(project)
    generation_project.import_records(project, labeled=0, unread=2, seed=7)
    assert scores.cached_freshness(project).n_stale == 5  # a small project is counted each time
    monkeypatch.setattr(scores, "_MANY", 4)
    scores.cached_freshness(project)
    with django_assert_num_queries(1):
        assert scores.cached_freshness(project).n_stale == 5
    cache.clear()  # other tests reuse the ids


def test_bad_scorer_leaves_earlier_scores_and_the_queue_unchanged() -> None:
    project = make_project()
    good, bad = scorer_servers.FakeVllmServer(), scorer_servers.FakeVllmServer(rows=lambda prompt: [[0.5, 0.5]] * 99)
    with scorer_servers.running_scorer(good) as address, scorer_servers.running_scorer(bad) as other:
        first = register(project, address)
        registry.make_current(prm=first, by=None, now=factories.NOW)
        scores.request_scoring(prm=first, by=None, now=factories.NOW)
        generation_project.run_jobs()
        before = set(QueueEntry.objects.filter(lane__project=project).values_list("pk", "lane_id", "slots_left"))
        second = register(project, other, "broken")
        registry.make_current(prm=second, by=None, now=factories.NOW)
        scores.request_scoring(prm=second, by=None, now=factories.NOW)
        (job,) = generation_project.run_jobs()
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "99" in job.failure
    assert Score.objects.filter(prm=first).count() == 12
    assert not Score.objects.filter(prm=second).exists()
    assert scores.count_fresh_scores(project).n_stale == 12
    now = set(QueueEntry.objects.filter(lane__project=project).values_list("pk", "lane_id", "slots_left"))
    assert now == before


@pytest.mark.fault
def test_generation_with_a_failing_scorer_resumes_after_a_retry() -> None:
    project = generation_project.make_project(labeled=60, unread=5)
    fake = scorer_servers.FakeVllmServer()
    with scorer_servers.running_scorer(fake) as address:
        prm = register(project, address)
        generation = generations.start_generation(project=project, by=None, now=factories.NOW, candidate=prm)
        fake.statuses = [400]
        generation_project.run_jobs()
        generation.refresh_from_db()
        assert generation.stage == Stage.EVALUATE
        assert "400" in Job.objects.get(subject=generation.subject).failure
        generations.retry_generation(generation=generation, by=None, now=factories.NOW)
        generation_project.run_jobs()
    generation.refresh_from_db()
    assert generation.stage == Stage.DONE
    assert registry.current_prm(project.pk) == (prm if generation.verdict == "accepted" else None)


@pytest.mark.fault
def test_old_scores_are_deleted_except_for_draws_and_a_rollback() -> None:
    project = generation_project.make_project(labeled=40, unread=20)
    generations.change_loop_rules(project=project, by=None, now=factories.NOW, batch_size=8)
    versions = [
        generation_project.run_generation(project, factories.NOW + dt.timedelta(hours=n)).candidate for n in range(3)
    ]
    for number, prm in enumerate(versions):
        assert prm is not None
        registry.make_current(prm=prm, by=None, now=factories.NOW + dt.timedelta(hours=number))
    before = [Score.objects.filter(prm=prm).count() for prm in versions]
    assert scores.delete_old_scores(now=factories.NOW + scores.RETENTION) == 0
    n_deleted = scores.delete_old_scores(now=factories.NOW + scores.RETENTION + dt.timedelta(days=1))
    after = [Score.objects.filter(prm=prm).count() for prm in versions]
    first = versions[0]
    assert first is not None
    drawn_by_first = TraceDraw.objects.filter(prm=first.label).values("trace").distinct().count()
    assert after == [drawn_by_first, *before[1:]]
    assert n_deleted == before[0] - drawn_by_first > 0


@pytest.mark.fault
def test_pushed_prm_is_evaluated_on_pushed_held_out_scores_and_becomes_current() -> None:
    project = generation_project.make_project(labeled=120, unread=20)
    generations.change_loop_rules(project=project, by=None, now=factories.NOW, gate_margin=0.2)
    first = generation_project.run_generation(project).candidate
    assert first is not None
    rows = list(project.traces.select_related("problem").order_by("pk"))
    held_out = [row for row in rows if row.problem.is_reserve]
    texts = {text.trace: text for text in labeled_traces.load_trace_texts([row.pk for row in rows])}
    pushed = registry.register_prm(project=project, identity=PRMIdentity("pushed", "mine"), by=None, now=factories.NOW)
    lines = [
        json.dumps(
            {
                "trace": row.pk,
                "scores": [0.8 - 0.7 * (features.count_equations(step)[1] > 0) for step in texts[row.pk].steps],
            }
        )
        for row in rows
        if row.pk != held_out[0].pk
    ]
    assert (
        scores.push_scores(prm=pushed, lines=map(str.encode, lines), by=None, now=factories.NOW).added == len(rows) - 1
    )
    generation = generations.start_generation(project=project, by=None, now=factories.NOW, candidate=pushed)
    generation_project.run_jobs()
    generation.refresh_from_db()
    assert (generation.stage, generation.verdict) == (Stage.DONE, "accepted")
    n_judged = labeled_traces.load_trace_labels(generation.manifest).is_reserve.sum() if generation.manifest else 0
    assert generation.gate["counts"]["traces"] in {n_judged, n_judged - 1}
    assert generation.gate["figures"]["auc"]["value"] > 0.7
    assert registry.current_prm(project.pk) == pushed
    assert generation.n_policy > 0
