"""PRMs that label: their scores become labels at a threshold, and P(E) follows from the same probabilities."""

import json

import numpy as np
import pytest

from labeling.models import Assignment, Judgment, Project
from machines import judges, prm_job
from machines.judges import InvalidJudge
from machines.models import Judge, JudgedTrace, JudgeRunState
from machines.runs import RunRefused
from prm import registry, scores
from prm.models import PRM, Score
from prm.registry import PRMIdentity
from tests import factories
from tests.machines import judged_project
from tests.prm.backends import scorer_servers

pytestmark = pytest.mark.django_db


def push(prm: PRM, *numbers: list[float | None]) -> None:
    lines = []
    for each in numbers:
        trace = factories.make_trace(prm.project, [f"Step {n}." for n in range(len(each))])
        lines.append(json.dumps({"trace": trace.pk, "scores": each}).encode())
    assert scores.push_scores(prm=prm, lines=lines, by=None, now=factories.NOW).added == len(numbers)


def make_rater(project: Project, prm: PRM, threshold: float | None = None) -> Judge:
    return judges.add_prm_rater(prm=prm, threshold=threshold, by=None, now=factories.NOW)


def test_scores_become_labels_up_to_the_first_error() -> None:
    project = judged_project.make_project(1)  # its trace has no score
    prm = judged_project.make_prm(project, 0.5)
    push(prm, [0.9, 0.5, 0.1], [0.8, 0.6])
    judge = make_rater(project, prm)
    run = judged_project.run_to_end(judged_project.start_run(judge))
    assert (run.state, run.n_traces, run.n_labeled, run.tokens) == (JudgeRunState.DONE, 2, 2, 0)
    labels = Judgment.objects.order_by("turn__assignment", "turn__step__position")
    assert list(labels.values_list("turn__step__position", "rating")) == [(0, 1), (1, -1), (0, 1), (1, 1)]
    assert list(labels.values_list("value", flat=True)) == pytest.approx([0.9, 0.45, 0.8, 0.48])
    first, second = JudgedTrace.objects.order_by("trace")
    assert (first.first_error, second.first_error, first.is_blind) == (1, None, True)
    assert [share for _, share in first.first_errors] == pytest.approx([0.1, 0.45, 0.405, 0.045])
    assert set(Assignment.objects.values_list("rater__kind", "saw_reference_answer")) == {("machine", False)}
    assert judge.rater.machine.startswith("PRM: prm-1 1 (1 m")


def test_threshold_is_a_version_of_its_own() -> None:
    project = factories.make_project()
    prm = judged_project.make_prm(project, 0.5)
    push(prm, [0.9, 0.5, 0.1])
    for threshold, first_error in ((0.5, 1), (0.6, 2), (0.95, None)):
        judge = make_rater(project, prm, threshold)
        judged_project.run_to_end(judged_project.start_run(judge))
        assert JudgedTrace.objects.get(judge=judge).first_error == first_error
    assert list(Judge.objects.order_by("pk").values_list("version", flat=True)) == [1, 2, 3]
    with pytest.raises(RunRefused):
        judged_project.start_run(judge)
    for wrong in (0.0, 1.1, float("nan")):
        with pytest.raises(InvalidJudge):
            make_rater(project, prm, wrong)


def test_context_has_no_label() -> None:
    judge = make_rater(project := factories.make_project(), judged_project.make_prm(project))
    ratings, shares = prm_job.label_steps(judge, [True, False, True], np.array([0.9, 0.0, 0.3]))
    assert [(rating.position, rating.rating) for rating in ratings] == [(0, 1), (2, -1)]
    assert [position for position, _ in shares] == [0, 2, None]
    assert sum(share or 0 for _, share in shares) == pytest.approx(1.0)
    assert prm_job.label_steps(judge, [False], np.array([0.0])) == ([], [])


def test_missing_scores_are_computed_and_kept() -> None:
    project = judged_project.make_project(3)
    with scorer_servers.running_scorer(fake := scorer_servers.FakeVllmServer()) as address:
        identity = PRMIdentity("vllm", "m", address=address, options={"timeout": 20})
        prm = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
        judge = make_rater(project, prm)
        run = judged_project.run_to_end(judged_project.start_run(judge, most_traces=2))
        assert (run.state, run.n_judged, Score.objects.count()) == (JudgeRunState.DONE, 2, 2)
        run = judged_project.run_to_end(judged_project.start_run(make_rater(project, prm)))
    assert (run.n_judged, run.n_labeled, Score.objects.count()) == (3, 3, 3)
    assert len(fake.requests) == 2  # two traces, then the one that had no scores yet


def test_prm_has_no_trial() -> None:
    project = factories.make_project()
    push(prm := judged_project.make_prm(project), [0.9])
    with pytest.raises(RunRefused):
        judged_project.start_run(make_rater(project, prm), is_trial=True)
