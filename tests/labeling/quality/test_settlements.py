"""Running totals against a recount."""

import datetime as dt
import random
from functools import partial

import pytest

from labeling import queue
from labeling.models import Project, ProjectStats, ReportCount, Settlement, SettlementDay, Trace
from labeling.quality import consensus, project_stats, resolve, settlements
from labeling.quality.adjudication import decide_trace, list_contested, send_back_trace
from tests import concurrency, factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
TOMORROW = NOW + dt.timedelta(days=1)
NOTHING: settlements.TotalsDrift = {"labeling_settlementday": {}, "labeling_reportcount": {}}


def read_by_two(project: Project, *readings: tuple[int | None, int | None]) -> list[Trace]:
    """Make traces of three steps, each with the first errors of two raters."""
    raters = submitted_work.make_raters(project, 2)
    made = [factories.make_trace(project, ["One.", "Two.", "Three."]) for _ in readings]
    for trace, ends in zip(made, readings, strict=True):
        for rater, end in zip(raters, ends, strict=True):
            submitted_work.submit_trace(rater, trace, [1, 1, 1] if end is None else [*[1] * end, -1])
    return made


def test_totals_follow_resolution_correction_and_decision() -> None:
    project = factories.make_project()
    same, apart = read_by_two(project, (1, 1), (None, 2))
    resolve.resolve_due_traces(now=NOW)
    assert settlements.count_by_state(project.pk) == {"settled": 1, "asked": 1}
    assert settlements.count_resolved(project.pk) == (1, 2)
    lead = factories.make_user()
    decide_trace(trace_id=apart.pk, first_error=2, by=lead, now=TOMORROW)
    assert settlements.count_by_state(project.pk) == {"settled": 1, "decided": 1}
    assert settlements.count_by_day(project.pk) == [
        {"day": "2026-11-18", "settled": 1, "contested": 0, "steps": 2},
        {"day": "2026-11-19", "settled": 1, "contested": 0, "steps": 3},
    ]
    first, second = ReportCount.objects.order_by("rater")
    assert (first.readings, first.steps, first.compared, first.same, first.missed) == (2, 5, 2, 1, 1)
    assert (second.readings, second.steps, second.compared, second.same, second.missed) == (2, 5, 2, 2, 0)
    send_back_trace(trace_id=apart.pk, by=lead, now=TOMORROW)
    assert settlements.count_by_state(project.pk) == {"settled": 1, "asked": 1}
    submitted_work.correct_step(same.assignments.order_by("pk")[0], 1, 1, more={2: 1})
    resolve.resolve_due_traces(now=TOMORROW)
    assert settlements.count_resolved(project.pk) == (0, 0)
    assert settlements.compute_drift(project_id=project.pk) == NOTHING


@pytest.mark.fault
def test_totals_equal_a_recount_after_any_changes() -> None:
    dice = random.Random(5)
    project = factories.make_project()
    lead = factories.make_user()
    traces = read_by_two(project, *[(dice.choice([None, 0, 1, 2]), dice.choice([None, 0, 1])) for _ in range(10)])
    for n in range(12):
        at = NOW + dt.timedelta(hours=7 * n)
        chosen = dice.choice(traces)
        if n % 3 == 1:
            send_back_trace(trace_id=chosen.pk, by=lead, now=at)
        elif n:
            decide_trace(trace_id=chosen.pk, first_error=dice.choice([None, 0, 2]), by=lead, now=at)
            Settlement.objects.filter(pk=dice.choice(traces).pk).update(is_due=True)
        resolve.resolve_due_traces(now=at)
        assert settlements.compute_drift(project_id=project.pk) == NOTHING


def test_drift_is_reported_and_corrected() -> None:
    project = factories.make_project()
    read_by_two(project, (1, 1), (None, 2))
    resolve.resolve_due_traces(now=NOW)
    SettlementDay.objects.filter(state="settled").update(steps=40)
    SettlementDay.objects.filter(state="asked").delete()
    ReportCount.objects.order_by("pk")[:1].get().delete()
    drift = settlements.compute_drift(project_id=project.pk)
    assert [len(drift[table]) for table in NOTHING] == [2, 1]
    assert settlements.apply_drift(project_id=project.pk, drift=drift) == 3
    assert settlements.compute_drift(project_id=project.pk) == NOTHING
    assert settlements.count_resolved(project.pk) == (1, 2)


def test_negative_totals_are_reported_as_zero() -> None:
    project = factories.make_project()
    read_by_two(project, (1, 1), (None, 2))
    resolve.resolve_due_traces(now=NOW)
    SettlementDay.objects.filter(project=project).update(traces=-8, steps=-8)
    ReportCount.objects.filter(project=project).update(compared=1, same=2, missed=-1)
    told = project_stats.compute_project_stats(project_id=project.pk, now=NOW)
    assert (told["settlements"], told["settled_days"]) == ({}, [])
    assert {tuple(each["consensus"].values()) for each in told["raters"].values()} == {(2, 2, 0, 0)}


def test_withdrawn_traces_are_not_counted_until_imported_again() -> None:
    project = factories.make_project(overlap_limit=2)
    agreed, other, apart = read_by_two(project, (1, 1), (None, None), (None, 2))
    resolve.resolve_due_traces(now=NOW)
    Settlement.objects.filter(trace=apart).update(state="contested")
    settlements.apply_drift(project_id=project.pk, drift=settlements.compute_drift(project_id=project.pk))
    before = (
        settlements.count_by_state(project.pk),
        settlements.count_resolved(project.pk),
        settlements.count_by_day(project.pk),
    )
    assert before[:2] == ({"contested": 1, "settled": 2}, (2, 5))
    gone = [agreed.pk, apart.pk]
    queue.withdraw_traces(trace_ids=gone, now=NOW, reason="broken", by=None)
    assert (settlements.count_by_state(project.pk), settlements.count_resolved(project.pk)) == (
        {"settled": 1},
        (1, 3),
    )
    assert settlements.count_by_day(project.pk) == [{"day": "2026-11-18", "settled": 1, "contested": 0, "steps": 3}]
    assert [each.trace for each in consensus.current_revisions(project_id=project.pk)] == [other]
    assert not list_contested(project_id=project.pk).exists()
    assert settlements.compute_drift(project_id=project.pk) == NOTHING
    queue.reinstate_traces(trace_ids=gone, now=NOW, reason="brought in again", by=None)
    assert (
        settlements.count_by_state(project.pk),
        settlements.count_resolved(project.pk),
        settlements.count_by_day(project.pk),
    ) == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.fault
def test_totals_are_correct_after_concurrent_resolution() -> None:
    project = factories.make_project()
    traces = [each.pk for each in read_by_two(project, *[(n % 3, n % 2) for n in range(12)])]
    parts = [traces[start::4] for start in range(4)]
    concurrency.run_at_once(
        *[partial(resolve.resolve_traces, project_id=project.pk, trace_ids=part, now=NOW) for part in parts]
    )
    resolve.resolve_due_traces(now=NOW)  # traces that were locked before
    assert sum(settlements.count_by_state(project.pk).values()) == 12
    assert settlements.compute_drift(project_id=project.pk) == NOTHING


def test_new_traces_are_counted_after_an_hour() -> None:
    project = factories.make_project()
    old = [factories.make_trace(project).pk for _ in range(3)]
    factories.make_trace(factories.make_project())
    young = factories.make_trace(project)
    late = factories.make_trace(project).pk
    Trace.objects.filter(pk=young.pk).update(added_at=NOW + dt.timedelta(hours=2))
    project_stats.mark_stats_stale(project_id=project.pk, now=NOW)
    assert project_stats.count_traces(project_id=project.pk) == 5
    project_stats.advance_trace_count(project_id=project.pk, now=NOW + dt.timedelta(hours=2))
    row = ProjectStats.objects.get()
    assert (row.n_traces, row.last_trace) == (3, old[-1])  # the last one is old too, but has a higher id than a new one
    queue.withdraw_traces(trace_ids=[late, old[0]], now=NOW, reason="broken", by=None)
    assert project_stats.count_traces(project_id=project.pk) == 3
    ProjectStats.objects.update(n_traces=7)
    assert [project_stats.recount_traces(project_id=project.pk) for _ in range(2)] == [1, 0]
    project_stats.reset_trace_count(project_id=project.pk)
    assert project_stats.count_traces(project_id=project.pk) == 3


def test_censored_reports_are_not_compared() -> None:
    """Giving up is neither a missed error nor agreement that there is no error."""
    project = factories.make_project()
    wrong, sound = read_by_two(project, (1, 1), (None, None))
    rater = factories.make_rater(project)
    submitted_work.give_up(rater, wrong, [1], population="extra")
    submitted_work.give_up(rater, sound, [1], population="extra")
    resolve.resolve_due_traces(now=NOW)
    rows = ReportCount.objects.values_list("rater_id", "readings", "compared", "same", "missed")
    counted = {rater_id: counts for rater_id, *counts in rows}
    assert counted[rater.pk] == [2, 0, 0, 0]
    assert sorted(counted.values())[1:] == [[2, 2, 2, 0]] * 2


def test_single_vote_consensus_is_not_compared() -> None:
    project = factories.make_project(overlap=1)
    trace = factories.make_trace(project, ["One.", "Two."])
    submitted_work.submit_trace(factories.make_rater(project), trace, [1, -1])
    resolve.resolve_due_traces(now=NOW)
    assert [(each.readings, each.compared) for each in settlements.load_rater_totals(project.pk)] == [(1, 0)]
