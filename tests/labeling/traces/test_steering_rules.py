"""Rules: filter, sample, lane. They apply only to traces that an import adds."""

from typing import Any

import pytest

from formats.records import OptionRecord, ProblemRecord, StepRecord, TraceRecord
from labeling.models import Problem, Project, QueueEntry, RaterGroup, SteeringRule, Trace
from labeling.traces import load, steering_rules
from tests import factories
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def make_rule(project: Project, **fields: Any) -> int:
    options = {"domain": "", "source_name": "", "share": 1.0, "group": None, "applies_to_existing": False, **fields}
    return steering_rules.make_rule(project=project, by=None, now=NOW, **options)


def chosen(project: Project) -> dict[int, int | None]:
    entries = QueueEntry.objects.open().filter(lane__project=project, lane__arm="chosen")
    return dict(entries.values_list("trace_id", "lane__group"))


def test_filters_decide_in_the_order_of_the_rules() -> None:
    project = factories.make_project(reserve_problem_share=0)
    group = RaterGroup.objects.create(project=project, name="Geometry", made_at=NOW)
    traces = queues.fill_lane(project, 3)
    for pk, domain in zip(traces, ("Geometry", "algebra", "sums"), strict=True):
        problem = factories.make_problem(project, domain=domain)
        source = factories.make_source(project, f"{domain}.jsonl")
        Trace.objects.filter(pk=pk).update(problem=problem, source=source)
    make_rule(project, domain="geometry", group=group)
    make_rule(project, source_name="ALGEBRA")
    make_rule(project, domain="geometry")
    assert steering_rules.apply_rules(project_id=project.pk, trace_ids=traces, now=NOW) == 2
    assert chosen(project) == {traces[0]: group.pk, traces[1]: None}


@pytest.mark.fault
def test_sample_is_fixed_and_of_the_right_size() -> None:
    project = factories.make_project()
    traces = queues.fill_lane(project, 300)
    make_rule(project, share=0.3)
    n = steering_rules.apply_rules(project_id=project.pk, trace_ids=traces, now=NOW)
    assert 60 <= n <= 120
    assert steering_rules.apply_rules(project_id=project.pk, trace_ids=traces, now=NOW) == 0


def test_existing_traces_are_chosen_only_if_asked_and_held_out_ones_never() -> None:
    project = factories.make_project()
    traces = queues.fill_lane(project, 2)
    held_out = queues.fill_lane(project, 1, arm="reserve")
    Problem.objects.filter(traces__in=held_out).update(is_reserve=True)
    assert make_rule(project) == 0
    assert make_rule(project, applies_to_existing=True) == 2
    assert set(chosen(project)) == set(traces)


def test_an_import_applies_rules_until_they_are_stopped() -> None:
    project = factories.make_project(reserve_problem_share=0)
    make_rule(project)
    rule = SteeringRule.objects.get()
    for number in range(2):
        steps = [StepRecord([OptionRecord("It is 2.")])]
        record = TraceRecord(problem=ProblemRecord(text=f"What is {number} + 1?"), steps=steps)
        load.load_records(project=project, source=factories.make_source(project), records=[record], now=NOW)
        steering_rules.stop_rule(rule=rule, by=None, now=NOW)
    assert set(chosen(project)) == {Trace.objects.earliest("pk").pk}
