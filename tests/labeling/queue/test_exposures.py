from collections import Counter

import pytest

from labeling import queue
from labeling.models import Assignment, Exposure, SuggestionPlan
from labeling.models.suggestion import ExposureArm
from labeling.queue import exposures
from tests import factories
from tests.labeling import suggested_project
from tests.labeling.queue.queues import GOLD, RESERVE, UNIFORM, fill_lane
from tests.machines import machine_labels

pytestmark = pytest.mark.django_db


def test_arms_have_their_shares_and_probabilities() -> None:
    plan = SuggestionPlan(reveal_share=0.3, suggest_share=0.2, seed="s")
    drawn = Counter(exposures.choose_arm(plan, exposures.draw_number("s", 1, trace)) for trace in range(4000))
    assert dict(drawn.keys()) == pytest.approx(
        {ExposureArm.REVEAL: 0.3, ExposureArm.SUGGEST: 0.2, ExposureArm.BLIND: 0.5}
    )
    assert all(n / 4000 == pytest.approx(probability, abs=0.03) for (_, probability), n in drawn.items())


@pytest.mark.parametrize(("arm", "reveal", "suggest"), [("suggest", 0.0, 0.9), ("reveal", 0.9, 0.0)])
def test_a_claim_records_arm_probability_and_what_is_shown(arm: str, reveal: float, suggest: float) -> None:
    project = factories.make_project()
    plan = suggested_project.start(project, reveal=reveal, suggest=suggest)
    traces = [factories.make_trace(project) for _ in range(3)]
    machine_labels.label_by_machine(plan.machine, dict.fromkeys(traces, 1))
    queue.enqueue(
        project_id=project.pk, arm="uniform", trace_ids=[each.pk for each in traces], slots=9, now=factories.NOW
    )
    rater = suggested_project.find_rater(plan, traces[0], arm)
    claim = queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=UNIFORM)
    row = Exposure.objects.get(pk=claim.assignment_id)
    number = exposures.draw_number(plan.seed, rater.pk, claim.trace_id)
    assert (row.arm, row.probability) == exposures.choose_arm(plan, number)
    assert row.shown == Assignment.objects.get(rater=plan.machine, trace=claim.trace_id)
    assert row.assignment.is_assisted == (row.arm != "blind")


def test_held_out_traces_and_traces_without_machine_labels_are_blind() -> None:
    project = factories.make_project()
    plan = suggested_project.start(project, suggest=0.9)
    reserve, unlabeled = fill_lane(project, 1, arm="reserve"), fill_lane(project, 1)
    machine_labels.label_by_machine(plan.machine, {factories.make_trace(project): None})
    rater = factories.make_rater(project)
    for chance in (RESERVE, UNIFORM):
        queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=chance)
    assert set(rater.assignments.values_list("trace", flat=True)) == {*reserve, *unlabeled}
    assert not Exposure.objects.exists()


def test_hidden_gold_is_drawn_too() -> None:
    project = factories.make_project()
    plan = suggested_project.start(project, suggest=0.9)
    (gold,) = fill_lane(project, 1, arm="gold")
    fill_lane(project, 1)
    Assignment.objects.create(
        project=project,
        rater=plan.machine,
        trace_id=gold,
        state="submitted",
        submitted_at=factories.NOW,
        submitted_revision=1,
        finish_reason="solution",
    )
    rater = factories.make_rater(project)
    claim = queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=GOLD)
    assert (claim.purpose, Exposure.objects.get().assignment_id) == ("gold", claim.assignment_id)


def test_project_without_suggestions_draws_nothing() -> None:
    project = factories.make_project()
    fill_lane(project, 1)
    claim = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=factories.NOW)
    assert claim.suggestion_plan is None
