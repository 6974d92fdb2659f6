"""Every arm has its sentence: why a trace is read, for leads."""

import pytest

from labeling import onboarding, queue
from labeling.models import Project, Trace
from labeling.models.queue import SamplingSource
from prm import explanation
from tests import factories

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def words(trace: Trace) -> str:
    read = Trace.objects.select_related("problem").get(pk=trace.pk)
    entries = read.queue_entries.select_related("lane")
    return explanation.explain_selection(
        read, gold=list(read.gold.filter(retired_at=None)), entries=list(entries)
    ).words


def in_lane(project: Project, arm: str, slots: int = 1) -> Trace:
    trace = factories.make_trace(project)
    queue.enqueue(project_id=project.pk, arm=arm, trace_ids=[trace.pk], slots=slots, now=NOW)
    return trace


@pytest.mark.parametrize(
    ("use", "told"), [("training", "in training"), ("screening", "screening set"), ("hidden", "hidden among the work")]
)
def test_why_of_a_known_answer_is_its_use(use: str, told: str) -> None:
    trace = in_lane(factories.make_project(), "uniform", 2)
    onboarding.make_served_gold(trace=trace, use=use, accepted_first_errors=[0], by=None, now=NOW)  # type: ignore[arg-type]  # as a page sends it
    assert told in words(trace)
    assert "uniform" not in words(trace)


def test_why_tells_what_came_back_and_what_was_asked_for_since() -> None:
    project = factories.make_project()
    trace = in_lane(project, "uniform", 2)
    assert words(trace) == "No batch has drawn it: it stands in the random order of the uniform lane."
    claim = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=NOW, opened=True)
    queue.release_assignment(assignment_id=claim.assignment_id, now=NOW, reason="", by=None)
    assert "given back" in words(trace)
    assert queue.add_slot(trace_id=trace.pk, round=2, now=NOW)
    assert words(trace).endswith("headline.")
    assert "further opinion" in words(trace)


def test_why_of_reserve_draws_and_what_nobody_is_given() -> None:
    project = factories.make_project()
    reserve = factories.make_trace(project, problem=factories.make_problem(project, is_reserve=True))
    assert "set aside" in words(reserve)
    assert "stands in no lane" in words(factories.make_trace(project))
    for rank, arm in enumerate((SamplingSource.UNIFORM, SamplingSource.POLICY)):
        trace = factories.make_trace(project)
        trace.draws.create(project=project, batch=1, rank=rank, arm=arm, q=0.25, pool_size=4, n_left=4, drawn_at=NOW)
        assert {SamplingSource.UNIFORM: "the control", SamplingSource.POLICY: "25 %"}[arm] in words(trace)
