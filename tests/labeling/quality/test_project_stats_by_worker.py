"""A worker process resolves traces and computes statistics after a submit, and one of several callers computes them."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from labeling import tasks
from labeling.models import Project, ProjectStats, Rater, Step
from labeling.projects import lifecycle
from labeling.quality import project_stats, resolve
from labeling.quality.project_stats import UNSEEN_INTERVAL, load_project_stats
from tests import concurrency, factories, servers
from tests.labeling.quality import submitted_work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_connections")]
DIMENSIONS: dict[str, set[str] | set[int]] = {
    "domain": {"algebra", "geometry"},
    "generation": {0},
    "guideline": {1},
    "step_kind": {"reasoning", "action"},
}


def read_one(project: Project, raters: list[Rater], domain: str) -> None:
    trace = factories.make_trace(project, ["Think.", "Call."], problem=factories.make_problem(project, domain=domain))
    Step.objects.filter(trace=trace, position=1).update(kind="action")
    for rater in raters:
        submitted_work.submit_trace(rater, trace, [1, -1], guideline=project.guideline)


def content(project: Project) -> dict[str, Any]:
    shown = load_project_stats(project_id=project.pk)
    return shown.content if shown else {"headline": {"n_traces": 0}}


def is_told(project: Project, n_traces: int) -> bool:
    return bool(content(project)["headline"]["n_traces"] == n_traces)


@pytest.mark.fault
def test_worker_updates_statistics_after_a_submit(broker: str, tmp_path: Path) -> None:
    project = factories.make_project()
    lifecycle.publish_guideline(project=project, body="Rate.", by=None, now=factories.NOW)
    raters = submitted_work.make_raters(project, 2)
    environment = servers.process_environment(tmp_path, broker=broker)
    worker = servers.start_worker(env=environment, log=tmp_path / "worker.log", is_forked=False)
    try:
        with servers.publish_to(broker):
            for n, domain in enumerate(("algebra", "geometry"), start=1):
                read_one(project, raters, domain)
                ProjectStats.objects.update(computed_at=timezone.now() - UNSEEN_INTERVAL)
                tasks.refresh_quality.delay()
                servers.wait_until(partial(is_told, project, n), what="the figures")
    finally:
        worker.kill()
    found = content(project)
    for by, keys in DIMENSIONS.items():
        assert {row["key"] for row in found[by]} == keys
        assert all(row["steps"]["pairwise_agreement"]["value"] == 1 for row in found[by])
        assert all(row["first_error"]["exact"]["value"] == 1 for row in found[by] if row["key"] != "reasoning")
    assert [row["raters"] for row in found["pair"]] == [sorted(rater.pk for rater in raters)]
    assert found["settlements"] == {"settled": 2}


@pytest.mark.fault
def test_one_of_two_concurrent_callers_claims_the_computation() -> None:
    project = submitted_work.project_with_two_submissions()
    resolve.resolve_due_traces(now=factories.NOW)
    claim = partial(project_stats.claim_computation, project_id=project.pk, now=factories.NOW)
    assert sorted(map(str, concurrency.run_at_once(*[claim] * 4))) == ["False", "False", "False", "True"]
