"""Every trace has a reason for its selection, as a code and as a sentence."""

import numpy as np
import pytest

from labeling import gold_sets, queue
from labeling.models import Project, Trace
from labeling.models.queue import SamplingSource
from prm import explanation, registry, scores
from prm.explanation import SelectionExplanation, SelectionReason
from prm.registry import PRMIdentity
from tests import factories

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def explain(trace: Trace) -> SelectionExplanation:
    trace = Trace.objects.select_related("problem").get(pk=trace.pk)
    entries = list(trace.queue_entries.select_related("lane"))
    return explanation.explain_selection(trace, gold=list(trace.gold.filter(retired_at=None)), entries=entries)


def enqueue_trace(project: Project, slots: int = 1) -> Trace:
    trace = factories.make_trace(project)
    queue.enqueue(project_id=project.pk, arm=SamplingSource.UNIFORM, trace_ids=[trace.pk], slots=slots, now=NOW)
    return trace


def test_scores_of_the_steps_are_explained_and_the_least_certain_is_marked() -> None:
    project = factories.make_project()
    trace = factories.make_trace(project, ["One.", "Two.", "Three."])
    prm = registry.register_prm(project=project, identity=PRMIdentity("pushed", "m"), by=None, now=NOW)
    registry.make_current(prm=prm, by=None, now=NOW)
    numbers = scores.encode_scores(np.array([0.95, 0.5, 0.9]), ["One.", "Two.", "Three."], [True] * 3)
    prm.scores.create(trace=trace, numbers=numbers, scored_at=NOW)
    result = explain(trace)
    assert result.by == prm.label
    assert [step.number for step in result.steps] == [1, 2, 3]
    rights = [step.p_right for step in result.steps]
    assert all(right is not None for right in rights)
    assert rights[1] == min(right for right in rights if right is not None)
    assert result.steps[1].is_unsure


def test_every_reason_has_its_own_sentence() -> None:
    values = {"rank": 1, "batch": 1, "left": 2, "percent": "50"}
    texts = [str(explanation._TEXTS[reason]) % values for reason in SelectionReason]
    assert len(set(texts)) == len(texts)
    assert all(texts)


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        ("training", SelectionReason.TRAINING_GOLD),
        ("screening", SelectionReason.SCREENING_GOLD),
        ("hidden", SelectionReason.HIDDEN_GOLD),
    ],
)
def test_known_answer_is_the_only_reason(use: str, reason: SelectionReason) -> None:
    trace = enqueue_trace(factories.make_project(), 2)
    gold_sets.make_served_gold(trace=trace, use=use, accepted_first_errors=[0], by=None, now=NOW)  # type: ignore[arg-type]  # as a page sends it
    assert explain(trace).reasons == [reason]


def test_return_and_further_label_follow_the_first_reason() -> None:
    project = factories.make_project()
    trace = enqueue_trace(project, 2)
    assert explain(trace).reasons == [SelectionReason.RANDOM_QUEUE]
    claim = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=NOW, opened=True)
    queue.release_assignment(assignment_id=claim.assignment_id, now=NOW, reason="", by=None)
    assert explain(trace).reasons == [SelectionReason.RANDOM_QUEUE, SelectionReason.RETURNED]
    assert queue.add_slot(trace_id=trace.pk, round=2, now=NOW)
    assert explain(trace).reasons == [
        SelectionReason.RANDOM_QUEUE,
        SelectionReason.RETURNED,
        SelectionReason.FURTHER_LABEL,
    ]


def test_held_out_unqueued_and_withdrawn_traces_are_told_apart() -> None:
    project = factories.make_project()
    held_out = factories.make_trace(project, problem=factories.make_problem(project, is_reserve=True))
    assert explain(held_out).reasons == [SelectionReason.HELD_OUT]
    trace = factories.make_trace(project)
    assert explain(trace).reasons == [SelectionReason.NOT_QUEUED]
    queue.withdraw_traces(trace_ids=[trace.pk], now=NOW, reason="", by=None)
    assert explain(trace).reasons == [SelectionReason.WITHDRAWN]


@pytest.mark.parametrize(
    ("source", "reason", "number"),
    [
        (SamplingSource.UNIFORM, SelectionReason.RANDOM_DRAW, "4"),
        (SamplingSource.POLICY, SelectionReason.ACTIVE_DRAW, "25"),
    ],
)
def test_draw_names_its_batch_and_its_chance(source: str, reason: SelectionReason, number: str) -> None:
    project = factories.make_project()
    trace = factories.make_trace(project)
    trace.draws.create(project=project, batch=7, rank=3, arm=source, q=0.25, pool_size=4, n_left=4, drawn_at=NOW)
    result = explain(trace)
    assert result.reasons == [reason]
    for value in ("3", "7", number):
        assert value in result.words
