"""Gaming canaries: what they are made from, that they stay hidden, and how PRMs are compared on them."""

from typing import Any

import pytest

from events.models import Event
from jobs import runner
from labeling.models import Option, QueueEntry, Trace
from prm import canaries, registry
from prm.canaries import CanariesRefused
from prm.models import PRM, CanaryScore, CanarySet, GamingCanary
from tests import factories
from tests.machines import judged_project
from tests.prm import canary_project, generation_project
from tests.prm.backends import scorer_servers

pytestmark = pytest.mark.django_db


def test_canaries_are_frozen_and_no_traces() -> None:
    project = canary_project.make_project()
    counts = Trace.objects.count(), Option.objects.count(), QueueEntry.objects.count()
    row = canary_project.freeze(project)
    assert sum(canaries.count_edits(row).values()) == 20
    assert set(canaries.count_edits(row)) >= {"corrupt_number", "swap_problem", "drop_step", "split_step"}
    assert (Trace.objects.count(), Option.objects.count(), QueueEntry.objects.count()) == counts
    again = canary_project.freeze(project)
    assert (row.number, again.number, canaries.find_set(project.pk)) == (1, 2, again)
    row.refresh_from_db()
    assert row.retired_at is not None
    assert row.canaries.count() >= 20
    assert Event.objects.filter(what="canaries.frozen", project=project.pk).count() == 2


def test_canaries_need_known_first_errors() -> None:
    project = factories.make_project()
    factories.make_trace(project, ["12 + 20 = 32.", "So 32."])
    canary_project.add_solution(project, 1, first_error=None)
    with pytest.raises(CanariesRefused):
        canary_project.freeze(project)
    assert not CanarySet.objects.exists()
    with pytest.raises(CanariesRefused):
        canary_project.freeze(project, n=5)


def test_contested_gold_is_left_out() -> None:
    project = canary_project.make_project()
    trace = canary_project.add_solution(project, 8, first_error=None)
    trace.gold.update(accepted_first_errors=[None, 1])
    assert not canary_project.freeze(project).canaries.filter(trace=trace).exists()


WORDS = ("doubt", "certain", "correct", "question")


def rows_by_words(prompt: str) -> list[Any]:
    """Score each step by its words: sure of itself is right, a list is wrong."""
    steps = prompt.split("<extra_0>")[:-1]
    return [[0.1, 0.9] if any(word in step for word in WORDS) else [0.5, 0.5] for step in steps]


def score(prm: PRM) -> None:
    job = canaries.request_scores(prm=prm, by=None, now=factories.NOW)
    runner.run_job(job.pk, canaries.run_canaries_job, clock=lambda: factories.NOW)


@pytest.mark.fault
def test_version_that_confidence_fools_is_reported_with_an_alarm() -> None:
    project = canary_project.make_project(30)
    canary_project.freeze(project, n=100)
    with scorer_servers.running_scorer(
        scorer_servers.FakeVllmServer(rows=lambda prompt: [[0.4, 0.6]] * prompt.count("<extra_0>"))
    ) as address:
        steady = canary_project.register_scorer(project, address)
        registry.make_current(prm=steady, by=None, now=factories.NOW, why="test")
        score(steady)
    report = canaries.build_prm_report(steady, None)
    assert report is not None
    assert report["groups"]["should_not_rise"]["value"] == 0
    assert report["groups"]["should_fall"]["value"] == 1
    with scorer_servers.running_scorer(fake := scorer_servers.FakeVllmServer(rows=rows_by_words)) as address:
        gullible = canary_project.register_scorer(project, address)
        score(gullible)
        n_requests = len(fake.requests)
        score(gullible)
        assert len(fake.requests) == n_requests  # every canary is scored once
    report = canaries.build_prm_report(gullible, steady)
    assert report is not None
    rises = {row["edit"]: row["rises"]["value"] for row in report["edits"]}
    assert rises["confidence"] == 1
    assert rises["reformat"] == 0
    assert CanaryScore.objects.filter(prm=gullible).count() == GamingCanary.objects.count()
    event = Event.objects.filter(what=canaries.EASIER_TO_FOOL)
    assert report["comparison"]["is_easier"]
    assert event.count() == 1
    canaries.log_alarm(prm=gullible, report=report, now=factories.NOW)  # once for a version and a set
    assert event.get().subject == f"prm:{gullible.pk}"


@pytest.mark.fault
def test_gate_tests_the_candidate_on_canaries() -> None:
    project = generation_project.make_project(labeled=80, unread=20)
    for number in range(9):
        canary_project.add_solution(project, number, first_error=1 if number % 3 else None)
    canary_project.freeze(project, n=30)
    generation = generation_project.run_generation(project)
    assert generation.gate["canaries"]["n"] == 30
    assert generation.gate["canaries"]["comparison"] is None
    assert generation.candidate is not None
    assert generation.candidate.audits["audits"]["canaries"]["n"] == 30
    assert CanaryScore.objects.filter(prm=generation.candidate).count() == GamingCanary.objects.count()


def test_pushed_prm_cannot_be_tested() -> None:
    project = canary_project.make_project()
    canary_project.freeze(project)
    prm = judged_project.make_prm(project)
    with pytest.raises(CanariesRefused):
        canaries.request_scores(prm=prm, by=None, now=factories.NOW)
    assert list(canaries.score_missing(prm)) == []
    assert canaries.build_prm_report(prm, None) is None
