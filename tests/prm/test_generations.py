"""A whole generation: what it stores, what it adds to the queue, and how it fails."""

import datetime as dt
import json

import pytest

from events.models import Event
from jobs.models import Job, JobState
from labeling.models import QueueEntry, TraceDraw
from prm import generations, promotion, registry, scores
from prm.evaluation.gate import GateReason
from prm.models import PRM, Generation, Score
from prm.models.generation import Stage
from prm.promotion import Concern
from prm.registry import PRMIdentity
from tests import factories
from tests.prm import generation_project

pytestmark = pytest.mark.django_db
LATER = factories.NOW + dt.timedelta(days=1)


@pytest.mark.fault
def test_generation_trains_scores_and_serves_a_batch() -> None:
    project = generation_project.make_project()
    generations.change_loop_rules(project=project, by=None, now=factories.NOW, batch_size=20)
    generation = generation_project.run_generation(project)
    assert generation.stage == Stage.DONE
    prm = registry.current_prm(project.pk)
    assert prm is not None
    assert (generation.candidate, generation.verdict, prm.version) == (prm, "accepted", 1)
    assert prm.manifest == generation.manifest
    assert prm.evaluation["counts"]["traces"] > 20
    assert prm.evaluation["figures"]["auc"]["value"] > 0.7
    assert scores.count_fresh_scores(project).n_stale == 0
    assert set(prm.audits["left_out"]) == {"sums", "totals"}
    assert generation.gate["length_drift"]["n"] > 0
    draws = TraceDraw.objects.filter(project=project, batch=generation.batch or 0)
    assert draws.count() == generation.n_policy + generation.n_uniform == 20
    assert not draws.filter(trace__problem__is_reserve=True).exists()
    assert set(draws.values_list("prm", flat=True)) == {prm.label}
    served = QueueEntry.objects.filter(lane__project=project, lane__generation=1)
    assert {entry.draw_id for entry in served} == {draw.pk for draw in draws}
    assert all(entry.draw is not None and entry.key == -entry.draw.rank for entry in served.select_related("draw"))


@pytest.mark.fault
def test_second_generation_is_compared_with_the_first_and_replaces_its_batch() -> None:
    project = generation_project.make_project(labeled=80)
    generations.change_loop_rules(project=project, by=None, now=factories.NOW, batch_size=15, gate_margin=0.2)
    first = generation_project.run_generation(project)
    generation_project.import_records(project, labeled=60, unread=0, seed=1)
    second = generation_project.run_generation(project, LATER)
    assert second.stage == Stage.DONE
    assert second.gate["before"]["auc"]["value"] is not None
    assert second.n_submissions > first.n_submissions
    open_lanes = QueueEntry.objects.filter(lane__project=project, lane__closed_at=None, lane__generation=1)
    assert not open_lanes.exists()  # unopened traces could be drawn again
    assert Score.objects.filter(prm=first.candidate).count() > 0  # for a rollback
    assert second.verdict == "accepted"
    assert second.gate["comparison"]["n_problems"] > 20
    assert registry.roll_back(project=project, by=None, now=LATER) == first.candidate


@pytest.mark.fault
def test_undecided_generation_keeps_the_current_prm_until_a_person_confirms_it() -> None:
    project = generation_project.make_project(labeled=60, unread=30)
    first = generation_project.run_generation(project)
    generation_project.import_records(project, labeled=30, unread=0, seed=1)
    second = generation_project.run_generation(project, LATER)
    assert second.verdict == "undecided"
    assert second.stage == Stage.DONE
    comparison = second.gate["comparison"]
    assert comparison["missing"] > 0
    assert comparison["margin"] == 0.05
    assert registry.current_prm(project.pk) == first.candidate
    assert second.scored_with == first.candidate  # which draws the batch, too
    candidate, user = second.candidate, factories.make_user()
    assert candidate is not None
    with pytest.raises(promotion.PromotionRefused) as refused:
        promotion.promote_prm(prm=candidate, by=user, now=LATER)
    assert refused.value.concerns == [Concern.UNDECIDED]
    assert registry.current_prm(project.pk) == first.candidate
    promotion.promote_prm(prm=candidate, by=user, now=LATER, is_confirmed=True)
    assert registry.current_prm(project.pk) == candidate
    event = Event.objects.get(project=project.pk, what=promotion.OVERRIDDEN)
    assert (event.by, event.detail["concerns"]) == (user.pk, ["undecided"])


@pytest.mark.fault
def test_first_prm_without_scores_is_not_accepted() -> None:
    """Neither one without any scores, nor one without scores of the held-out traces."""
    project = generation_project.make_project(labeled=60, unread=5)
    identity = PRMIdentity("pushed", "mine")
    prm = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    outside = project.traces.filter(problem__is_reserve=False).order_by("pk")[0]
    line = json.dumps({"trace": outside.pk, "scores": [0.5] * outside.n_steps}).encode()
    for lines in ([], [line]):
        scores.push_scores(prm=prm, lines=lines, by=None, now=factories.NOW)
        generations.start_generation(project=project, by=None, now=factories.NOW, candidate=prm)
        generation_project.run_jobs()
        generation = Generation.objects.filter(project=project).latest("number")
        assert (generation.verdict, generation.gate["why"]) == ("undecided", GateReason.NO_SCORES)
        assert registry.current_prm(project.pk) is None


@pytest.mark.fault
def test_generation_without_labels_fails_and_a_later_one_succeeds() -> None:
    project = generation_project.make_project(labeled=0, unread=20)
    generation = generation_project.run_generation(project)
    assert generation.stage == Stage.TRAIN
    (job,) = generations.jobs_of_generation(generation)
    assert job.state == JobState.FAILED
    assert job.failure
    with pytest.raises(generations.AlreadyRunning):
        generations.start_generation(project=project, by=None, now=LATER)
    generations.stop_generation(generation=generation, by=None, now=LATER)
    generation_project.import_records(project, labeled=60, unread=0, seed=2)
    assert generation_project.run_generation(project, LATER).stage == Stage.DONE


@pytest.mark.fault
def test_evaluation_reports_best_of_n() -> None:
    project = factories.make_project(reserve_problem_share=0.5)
    generation_project.import_records(project, labeled=120, unread=0, per_problem=4)
    prm = generation_project.run_generation(project).candidate
    assert prm is not None
    two, four = prm.evaluation["best_of_n"]
    assert (two["n"], four["n"]) == (2, 4)
    assert four["by_chance"] < four["chosen"] <= four["possible"]


def test_stopped_generation_does_nothing_more() -> None:
    project = generation_project.make_project(labeled=40, unread=10)
    generation = generations.start_generation(project=project, by=None, now=factories.NOW)
    generations.stop_generation(generation=generation, by=None, now=factories.NOW)
    assert generation_project.run_jobs() == []
    generation.refresh_from_db()
    assert generation.stage == Stage.STOPPED
    assert not PRM.objects.exists()
    with pytest.raises(generations.NotRunning):
        generations.stop_generation(generation=generation, by=None, now=factories.NOW)


def test_rule_starts_a_generation_after_enough_submissions() -> None:
    project = generation_project.make_project(labeled=40, unread=10)
    generations.change_loop_rules(project=project, by=None, now=factories.NOW, every_n_submissions=41)
    assert generations.start_due_generations(now=factories.NOW) == 0
    generations.change_loop_rules(project=project, by=None, now=factories.NOW, every_n_submissions=40)
    assert generations.start_due_generations(now=factories.NOW) == 1
    assert generations.start_due_generations(now=factories.NOW) == 0
    assert generations.running_generation(project) is not None


@pytest.mark.fault
def test_generation_is_logged() -> None:
    project = generation_project.make_project(labeled=60, unread=10)
    user = factories.make_user()
    generations.start_generation(project=project, by=user, now=factories.NOW)
    generation_project.run_jobs()
    codes = set(Event.objects.filter(project=project.pk).values_list("what", flat=True))
    assert {"generation.started", "prm.registered", "prm.made_current", "generation.done"} <= codes
    assert Job.objects.filter(asked_by=user).count() == 3
