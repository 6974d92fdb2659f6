"""Verdicts of people and machines, compared with what is known of a trace."""

import io
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from formats import native
from labeling.models import Assignment, Trace, VisibilityPlan
from labeling.quality import monitors
from labeling.quality.monitors import InvalidMonitorQuery, MonitorRow
from labeling.traces import load
from labeling.traces.load import LoadState
from tests import factories
from tests.labeling import watched_project
from tests.machines import machine_labels

pytestmark = pytest.mark.django_db


def summarize(rows: list[MonitorRow]) -> list[tuple[str, str, str, float | None, float | None, int]]:
    return [
        (row.machine, row.condition, row.source, row.figures.tpr.value, row.figures.tnr.value, row.n_unknown)
        for row in rows
    ]


def test_people_and_machines_are_measured_by_condition() -> None:
    project = watched_project.make_project()
    watched_project.start(project)
    traces = watched_project.make_pairs(project, 6)
    judge, prm = (factories.make_machine_rater(project, f"judge: {name}") for name in "ab")
    for place, trace in enumerate(traces):
        rater = factories.make_rater(project)
        watched_project.answer(rater, trace, "yes" if place < 6 else "no", "reasoning")
        watched_project.answer(factories.make_rater(project), trace, "yes" if place % 2 else "no", "actions")
        watched_project.answer(judge, trace, "yes")
    machine_labels.label_by_machine(prm, {trace: 0 if place < 3 else None for place, trace in enumerate(traces)})
    query = monitors.make_query(project)
    assert query == ("hint", "yes", "pair", "")
    rows = monitors.measure_monitors(project, query)
    assert summarize(rows) == [
        ("", "reasoning", "answer", 1.0, 1.0, 0),
        ("", "actions", "answer", 0.5, 0.5, 0),
        ("judge: a", "both", "answer", 1.0, 0.0, 0),
        ("judge: b", "both", "steps", 0.5, 1.0, 0),
    ]
    assert [row.figures.g_mean2 for row in rows] == [1.0, 0.25, 0.0, 0.5]
    assert all(row.figures.tpr.n_problems == 6 and row.figures.interval for row in rows)


def test_only_counted_verdicts_enter() -> None:
    project = watched_project.make_project()
    rater = factories.make_rater(project)
    right, wrong, unknown, withdrawn = (
        factories.make_trace(project, is_right=is_right, outcome_by="" if is_right is None else "file")
        for is_right in (True, False, None, True)
    )
    for trace in (right, wrong, unknown, withdrawn):
        watched_project.answer(rater, trace, "yes")
    Trace.objects.filter(pk=withdrawn.pk).update(withdrawn_at=factories.NOW)
    assisted = factories.make_rater(project)
    watched_project.answer(assisted, right, "no")
    Assignment.objects.filter(rater=assisted).update(is_assisted=True)
    query = monitors.make_query(project)
    assert query is not None
    assert query.truth == "wrong"
    assert summarize(monitors.measure_monitors(project, query)) == [("", "both", "answer", 1.0, 0.0, 1)]
    no = monitors.make_query(project, yes="no")
    assert no is not None
    assert summarize(monitors.measure_monitors(project, no)) == [("", "both", "answer", 0.0, 1.0, 1)]


@pytest.mark.parametrize(("value", "tpr"), [(True, 1.0), ("Yes", 1.0), (1, 1.0), ("maybe", None), (None, None)])
def test_truth_comes_from_metadata(value: object, tpr: float | None) -> None:
    project = watched_project.make_project()
    trace = factories.make_trace(project, metadata={"used": value})
    watched_project.answer(factories.make_rater(project), trace, "yes")
    query = monitors.make_query(project, truth="metadata", key="used")
    assert query is not None
    [row] = monitors.measure_monitors(project, query)
    assert (row.figures.tpr.value, row.n_unknown) == (tpr, int(tpr is None))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"question": "other"}, "question"),
        ({"yes": "maybe"}, "yes"),
        ({"truth": "guess"}, "truth"),
        ({"truth": "metadata"}, "key"),
        ({"key": "used"}, "key"),
    ],
)
def test_impossible_queries_are_refused(given: dict[str, str], name: str) -> None:
    with pytest.raises(InvalidMonitorQuery) as refused:
        monitors.make_query(watched_project.make_project(), **given)
    assert refused.value.field == name


def test_project_without_questions_has_no_query() -> None:
    assert monitors.make_query(factories.make_project()) is None


def test_answers_of_a_machine_are_imported() -> None:
    project = watched_project.make_project()
    line: dict[str, object] = {"problem": "p", "steps": ["a"], "pair": "x", "pair_half": "with", "labels": []}
    line |= {"trace_answers": {"hint": "yes"}, "rater_kind": "machine", "rater_name": "monitor-1"}
    state = LoadState(project=project, source=factories.make_source(project))
    records = list(native.read(io.BytesIO(json.dumps(line).encode())))
    load.load_chunk(state=state, records=records, now=factories.NOW)
    query = monitors.make_query(project)
    assert query is not None
    assert summarize(monitors.measure_monitors(project, query)) == [("monitor-1", "both", "answer", 1.0, None, 0)]


def test_command_sets_conditions_and_prints_figures() -> None:
    project = watched_project.make_project()
    with pytest.raises(CommandError):
        call_command("monitors", "--project", "none")
    with pytest.raises(CommandError):
        call_command("monitors", "--project", project.slug, "--reasoning-share", "1")
    call_command("monitors", "--project", project.slug, "--reasoning-share", "0.5")
    plan = VisibilityPlan.objects.get()
    assert (plan.reasoning_share, plan.actions_share, plan.ended_at) == (0.5, 0, None)
    watched_project.answer(factories.make_rater(project), factories.make_trace(project), "yes", "reasoning")
    out = StringIO()
    call_command("monitors", "--project", project.slug, stdout=out)
    [row] = json.loads(out.getvalue())["monitors"]
    assert (row["condition"], row["n_unknown"], row["figures"]["g_mean2"]) == ("reasoning", 1, None)
    call_command("monitors", "--project", project.slug, "--off")
    assert not VisibilityPlan.objects.active().exists()
