"""Labels of traces that a person moved to the front settle them, and stay out of the figures of the project."""

import datetime as dt
import json
from typing import Any

import pytest

from labeling import queue
from labeling.models import AgreementTally, Assignment, Project, QueueEntry, Rater, Trace, TraceDraw
from labeling.quality import error_breakdowns, project_stats, resolve, tallies
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
EARLY, GOOD = [1, -1], [1, 1, 1]


def draw(project: Project, n: int) -> list[Trace]:
    """Make traces that a policy and the uniform walk have drawn in turn."""
    traces = [factories.make_trace(project) for _ in range(n)]
    for arm in ("policy", "uniform"):
        lane = factories.make_lane(project, arm)
        for rank, trace in enumerate(traces, 1):
            if (rank % 2 == 0) == (arm == "policy"):
                drawn = TraceDraw.objects.create(
                    project=project,
                    trace=trace,
                    batch=1,
                    rank=rank,
                    arm=arm,
                    q=0.1,
                    score=0.5,
                    n_left=n,
                    pool_size=n,
                    drawn_at=NOW,
                )
                entry = factories.make_entry(lane, trace, slots=2)
                QueueEntry.objects.filter(pk=entry.pk).update(draw=drawn)
    return traces


def label(rater: Rater, trace: Trace, ratings: list[int], *, population: str) -> None:
    drawn = TraceDraw.objects.get(trace=trace)
    submitted_work.submit_trace(rater, trace, ratings, population=population, draw=drawn, now=NOW)


@pytest.fixture
def project(tmp_path: Any, settings: Any) -> Project:
    settings.DATA_DIR = tmp_path
    return factories.make_project(reserve_problem_share=0.0)


@pytest.mark.fault
def test_chosen_traces_stay_out_of_headline_audit_slice_confusion_and_weights(project: Project) -> None:
    traces, raters = draw(project, 8), submitted_work.make_raters(project, 2)
    for number, trace in enumerate(traces):
        for rater, ratings in zip(raters, (EARLY, EARLY), strict=True):
            label(rater, trace, ratings, population="chosen" if number < 4 else "scheduled")
    resolve.resolve_due_traces(now=NOW)
    chosen, others = {trace.pk for trace in traces[:4]}, {trace.pk for trace in traces[4:]}
    content = project_stats.build_stats_content(project_id=project.pk, now=NOW)
    assert content["settled"]["traces"] == 8
    assert set(AgreementTally.objects.values_list("trace", flat=True)) == others
    assert content["headline"]["is_audit_slice"]
    audit_slice = set(tallies.find_audit_slice(project.pk) or ())
    assert audit_slice & chosen
    assert content["headline"]["n_traces"] == len(audit_slice & others) > 0
    assert content["everything"]["n_traces"] == content["confusion"]["n_traces"] == 4
    weights = export_weights(project)
    assert {trace for trace, weight in weights.items() if weight is None} == chosen
    assert sum(weight for weight in weights.values() if weight is not None) == pytest.approx(4)  # their mean is 1


def export_weights(project: Project) -> dict[int, float | None]:
    snapshot = build_snapshot(project, "first_errors")
    rows = [json.loads(line) for line in read_file(snapshot, "data/first_errors/train.jsonl").splitlines()]
    return {row["trace"]: row["weight"] for row in rows}


def test_one_chosen_label_keeps_a_trace_out_of_the_confusion(project: Project) -> None:
    trace, raters = draw(project, 1)[0], submitted_work.make_raters(project, 2)
    for rater, population in zip(raters, ("scheduled", "chosen"), strict=True):
        label(rater, trace, EARLY, population=population)
    resolve.resolve_due_traces(now=NOW)
    assert error_breakdowns.compute_confusion(project.pk)["n_traces"] == 0
    assert [row.second_id for row in AgreementTally.objects.all()] == [None]
    Assignment.objects.update(population="scheduled")
    assert error_breakdowns.compute_confusion(project.pk)["n_traces"] == 1


def test_claim_records_that_a_person_chose_the_trace(project: Project) -> None:
    trace = draw(project, 2)[1]
    queue.choose_traces(project_id=project.pk, trace_ids=[trace.pk], group=None, by=None, now=NOW)
    claimed = queue.claim_trace(rater_id=factories.make_rater(project).pk, now=NOW + dt.timedelta(minutes=1))
    assert claimed is not None
    row = Assignment.objects.get(trace=trace)
    assert (row.population, row.draw_id) == ("chosen", TraceDraw.objects.get(trace=trace).pk)
    assert row.lane is not None
    assert row.lane.arm == "chosen"
    assert not QueueEntry.objects.open().filter(trace=trace).exclude(lane__arm="chosen").exists()
