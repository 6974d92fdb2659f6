"""What is counted as traces move is what one finds by going through all of them."""

import datetime as dt
import random
from functools import partial

import pytest

from labeling import quality, queue
from labeling.models import Figures, Project, ReportCount, Settlement, SettlementDay, Trace
from labeling.quality import arrivals, consensus, figures, refreshing, settling, standings
from tests import factories, together
from tests.labeling.quality import scene

pytestmark = pytest.mark.django_db
NOW = factories.NOW
TOMORROW = NOW + dt.timedelta(days=1)
NOTHING: standings.Drift = {"labeling_settlementday": {}, "labeling_reportcount": {}}


def read_by_two(project: Project, *readings: tuple[int | None, int | None]) -> list[Trace]:
    """Traces of three steps; each of two raters sees the first error there, or none."""
    raters = scene.raters(project, 2)
    made = [factories.make_trace(project, ["One.", "Two.", "Three."]) for _ in readings]
    for trace, ends in zip(made, readings, strict=True):
        for rater, end in zip(raters, ends, strict=True):
            scene.submit(rater, trace, [1, 1, 1] if end is None else [*[1] * end, -1])
    return made


def test_counts_follow_a_trace_through_settling_correcting_and_deciding() -> None:
    project = factories.make_project()
    same, apart = read_by_two(project, (1, 1), (None, 2))
    refreshing.settle_due(now=NOW)
    assert standings.by_state(project.pk) == {"settled": 1, "asked": 1}
    assert standings.settled(project.pk) == (1, 2)
    lead = factories.make_user()
    quality.decide(trace_id=apart.pk, first_error=2, by=lead, now=TOMORROW)
    assert standings.by_state(project.pk) == {"settled": 1, "decided": 1}
    assert standings.by_day(project.pk) == [
        {"day": "2026-11-18", "settled": 1, "contested": 0, "steps": 2},
        {"day": "2026-11-19", "settled": 1, "contested": 0, "steps": 3},
    ]
    first, second = ReportCount.objects.order_by("rater")
    assert (first.readings, first.steps, first.compared, first.same, first.missed) == (2, 5, 2, 1, 1)
    assert (second.readings, second.steps, second.compared, second.same, second.missed) == (2, 5, 2, 2, 0)
    quality.send_back(trace_id=apart.pk, by=lead, now=TOMORROW)
    assert standings.by_state(project.pk) == {"settled": 1, "asked": 1}
    scene.correct(same.assignments.order_by("pk")[0], 1, 1, more={2: 1})
    refreshing.settle_due(now=TOMORROW)
    assert standings.settled(project.pk) == (0, 0)
    assert standings.drift(project_id=project.pk) == NOTHING


def test_counts_are_those_of_all_rows_whatever_happens() -> None:
    dice = random.Random(5)
    project = factories.make_project()
    lead = factories.make_user()
    traces = read_by_two(project, *[(dice.choice([None, 0, 1, 2]), dice.choice([None, 0, 1])) for _ in range(10)])
    for n in range(12):
        at = NOW + dt.timedelta(hours=7 * n)
        chosen = dice.choice(traces)
        if n % 3 == 1:
            quality.send_back(trace_id=chosen.pk, by=lead, now=at)
        elif n:
            quality.decide(trace_id=chosen.pk, first_error=dice.choice([None, 0, 2]), by=lead, now=at)
            Settlement.objects.filter(pk=dice.choice(traces).pk).update(is_due=True)
        refreshing.settle_due(now=at)
        assert standings.drift(project_id=project.pk) == NOTHING


def test_drift_is_said_and_put_right() -> None:
    project = factories.make_project()
    read_by_two(project, (1, 1), (None, 2))
    refreshing.settle_due(now=NOW)
    SettlementDay.objects.filter(state="settled").update(steps=40)
    SettlementDay.objects.filter(state="asked").delete()
    ReportCount.objects.order_by("pk")[:1].get().delete()
    drift = standings.drift(project_id=project.pk)
    assert [len(drift[table]) for table in NOTHING] == [2, 1]
    assert standings.put_right(project_id=project.pk, drift=drift) == 3
    assert standings.drift(project_id=project.pk) == NOTHING
    assert standings.settled(project.pk) == (1, 2)


def test_counts_below_zero_are_told_as_none() -> None:
    project = factories.make_project()
    read_by_two(project, (1, 1), (None, 2))
    refreshing.settle_due(now=NOW)
    SettlementDay.objects.filter(project=project).update(traces=-8, steps=-8)
    ReportCount.objects.filter(project=project).update(compared=1, same=2, missed=-1)
    told = figures.compute(project_id=project.pk, now=NOW)
    assert (told["settlements"], told["settled_days"]) == ({}, [])
    assert {tuple(each["consensus"].values()) for each in told["raters"].values()} == {(2, 2, 0, 0)}


def test_withdrawn_traces_count_nowhere_until_they_are_brought_in_again() -> None:
    project = factories.make_project(overlap_limit=2)
    agreed, other, apart = read_by_two(project, (1, 1), (None, None), (None, 2))
    refreshing.settle_due(now=NOW)
    Settlement.objects.filter(trace=apart).update(state="contested")
    standings.put_right(project_id=project.pk, drift=standings.drift(project_id=project.pk))
    before = standings.by_state(project.pk), standings.settled(project.pk), standings.by_day(project.pk)
    assert before[:2] == ({"contested": 1, "settled": 2}, (2, 5))
    gone = [agreed.pk, apart.pk]
    queue.withdraw(trace_ids=gone, now=NOW, reason="broken", by=None)
    assert (standings.by_state(project.pk), standings.settled(project.pk)) == ({"settled": 1}, (1, 3))
    assert standings.by_day(project.pk) == [{"day": "2026-11-18", "settled": 1, "contested": 0, "steps": 3}]
    assert [each.trace for each in consensus.current(project_id=project.pk)] == [other]
    assert not quality.contested(project_id=project.pk).exists()
    assert standings.drift(project_id=project.pk) == NOTHING
    queue.reinstate(trace_ids=gone, now=NOW, reason="brought in again", by=None)
    assert (standings.by_state(project.pk), standings.settled(project.pk), standings.by_day(project.pk)) == before


@pytest.mark.django_db(transaction=True)
def test_counts_stay_right_where_many_settle_at_once() -> None:
    project = factories.make_project()
    traces = [each.pk for each in read_by_two(project, *[(n % 3, n % 2) for n in range(12)])]
    parts = [traces[start::4] for start in range(4)]
    together.at_once(*[partial(settling.settle, project_id=project.pk, trace_ids=part, now=NOW) for part in parts])
    refreshing.settle_due(now=NOW)  # whoever had to skip a trace
    assert sum(standings.by_state(project.pk).values()) == 12
    assert standings.drift(project_id=project.pk) == NOTHING


def test_arrivals_are_counted_once_they_are_an_hour_old() -> None:
    project = factories.make_project()
    old = [factories.make_trace(project).pk for _ in range(3)]
    factories.make_trace(factories.make_project())
    young = factories.make_trace(project)
    late = factories.make_trace(project).pk
    Trace.objects.filter(pk=young.pk).update(added_at=NOW + dt.timedelta(hours=2))
    figures.mark_stale(project_id=project.pk, now=NOW)
    assert arrivals.count(project_id=project.pk) == 5
    arrivals.bring_forward(project_id=project.pk, now=NOW + dt.timedelta(hours=2))
    row = Figures.objects.get()
    assert (row.n_traces, row.last_trace) == (3, old[-1])  # the last is old too, and stands behind a young one
    queue.withdraw(trace_ids=[late, old[0]], now=NOW, reason="broken", by=None)
    assert arrivals.count(project_id=project.pk) == 3
    Figures.objects.update(n_traces=7)
    assert [arrivals.recount(project_id=project.pk) for _ in range(2)] == [1, 0]
    arrivals.start_anew(project_id=project.pk)
    assert arrivals.count(project_id=project.pk) == 3


def test_who_was_cut_off_is_held_against_nothing() -> None:
    """Giving up says nothing of what comes behind: it is no error missed, and no agreement that there is none."""
    project = factories.make_project()
    wrong, sound = read_by_two(project, (1, 1), (None, None))
    rater = factories.make_rater(project)
    scene.give_up(rater, wrong, [1], population="extra")
    scene.give_up(rater, sound, [1], population="extra")
    refreshing.settle_due(now=NOW)
    rows = ReportCount.objects.values_list("rater_id", "readings", "compared", "same", "missed")
    counted = {rater_id: counts for rater_id, *counts in rows}
    assert counted[rater.pk] == [2, 0, 0, 0]
    assert sorted(counted.values())[1:] == [[2, 2, 2, 0]] * 2


def test_what_one_reading_settled_is_not_held_against_it() -> None:
    project = factories.make_project(overlap=1)
    trace = factories.make_trace(project, ["One.", "Two."])
    scene.submit(factories.make_rater(project), trace, [1, -1])
    refreshing.settle_due(now=NOW)
    assert [(each.readings, each.compared) for each in standings.by_rater(project.pk)] == [(1, 0)]
