"""Setting labels aside: what counts without them, new labels, and undoing it without a trace."""

import datetime as dt
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from django.apps import apps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from events.models import Event
from jobs import runner
from jobs.models import Job
from labeling import queue
from labeling.models import (
    AgreementTally,
    Assignment,
    Consensus,
    EarlierSettlement,
    Project,
    QueueEntry,
    Rater,
    RaterModelFit,
    SetAside,
    Settlement,
    Trace,
    WorkDay,
)
from labeling.quality import (
    adjudication,
    consensus,
    error_breakdowns,
    imported_labels,
    project_stats,
    rater_model,
    remaining_work,
    set_aside,
    settlements,
    signals,
    workdays,
)
from labeling.quality.resolve import resolve_traces
from labeling.quality.set_aside import LabelScope
from prm import generations
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.quality import submitted_work
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db
NOW = factories.NOW
LATER = NOW + dt.timedelta(hours=1)
ALL_GOOD, EARLY, LATE = [1, 1, 1], [1, -1], [1, 1, -1]


def make_project(n_traces: int = 1, *, overlap: int = 2, limit: int = 5) -> tuple[Project, list[Trace]]:
    project = factories.make_project(overlap=overlap, overlap_limit=limit)
    traces = [factories.make_trace(project) for _ in range(n_traces)]
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[each.pk for each in traces], slots=overlap, now=NOW)
    for arm in ("top_up", "opinion"):
        factories.make_lane(project, arm)
    return project, traces


def label(rater: Rater, trace: Trace, ratings: Sequence[int], *, now: dt.datetime = NOW, **fields: Any) -> Assignment:
    """Label a trace as after a claim: the assignment takes a free slot, or counts as extra."""
    entry = QueueEntry.objects.open().filter(trace=trace).select_related("lane").order_by("lane__arm").first()
    if entry is None:
        fields |= {"population": "extra", "holds_slot": True}
    else:
        QueueEntry.objects.filter(pk=entry.pk).update(slots_left=entry.slots_left - 1)
        fields |= {"population": "opinion" if entry.lane.arm == "opinion" else "scheduled", "lane": entry.lane}
    made = submitted_work.submit_trace(rater, trace, ratings, now=now, **fields)
    if entry is None:
        Assignment.objects.filter(pk=made.pk).update(holds_slot=False)
    resolve_traces(project_id=trace.project_id, trace_ids=[trace.pk], now=now)
    return made


def put_aside(rater: Rater, *, now: dt.datetime = LATER, **scope: Any) -> SetAside:
    made = set_aside.set_aside_labels(
        project=rater.project, scope=LabelScope(rater.pk, now, **scope), reason="Clicks.", by=None, now=now
    )
    run_last_job(now)
    return made


def undo(made: SetAside, *, now: dt.datetime = LATER) -> None:
    assert set_aside.undo_set_aside(set_aside=made, by=None, now=now)
    run_last_job(now)


def run_last_job(now: dt.datetime) -> None:
    job = Job.objects.filter(kind=set_aside.KIND).latest("pk")
    assert runner.run_job(job.pk, set_aside.chunks, clock=lambda: now) == "done"


def look(trace: Trace) -> tuple[str, str, int]:
    row = Settlement.objects.get(pk=trace.pk)
    return row.state, row.reason, row.consensus_revision


def make_doubting_fit(project: Project) -> RaterModelFit:
    """Make a fit under which no result is probable enough to settle a trace."""
    careless, even = [0.3, 0.3, 0.3], [0.1] * 10
    return RaterModelFit.objects.create(
        project=project,
        number=1,
        made_at=LATER,
        n_traces=50,
        n_readings=100,
        n_gold=0,
        rates={"others": careless},
        hazards={"domains": {}, "all": even},
    )


def count_free(trace: Trace) -> int:
    return sum(QueueEntry.objects.filter(trace=trace).values_list("slots_left", flat=True))


# Undoing


# Tables that may have more rows afterwards, and why. Earlier rows stay as they were.
_MAY_GROW = {
    "Event": "logs both decisions",
    "SetAside": "records the decision and that it was undone",
    "Job": "records the work on both decisions",
    "Consensus": "keeps every revision; the current ones are compared by themselves",
    "RaterModelFit": "the test adds one",
}
# Columns that may differ, and why.
_MAY_DIFFER = {
    "AgreementTally": {"id"},  # recounted rows are new rows; nothing refers to them
    "SettlementDay": {"id"},
    "ReportCount": {"id"},
    "ProjectStats": {"took_ms"},
    "DailyProjectStats": {"id"},
}
_COUNTS = {"SettlementDay": 3, "ReportCount": 2}  # number of key columns; a row of zeros counts nothing


def dump_tables() -> dict[str, Counter[Any]]:
    """Return the rows of every table, without columns that may differ and without rows that mean nothing."""
    tables = {}
    for model in apps.get_models():
        name = model.__name__
        columns = [
            field.attname
            for field in model._meta.concrete_fields
            if field.attname not in _MAY_DIFFER.get(name, ()) and (name, field.attname) != ("QueueEntry", "key")
        ]
        rows: Any = model._default_manager.values_list(*columns)
        if name == "QueueEntry":
            # An entry without any slot is not served. One whose slots are all taken has no place in its lane.
            places = model._default_manager.values_list("key", "slots", "slots_left", *columns)
            rows = [
                (row, key if slots_left else None) for key, slots, slots_left, *row in places if slots or slots_left
            ]
        if name in _COUNTS:
            rows = [row for row in rows if any(row[_COUNTS[name] :])]
        tables[f"{model._meta.app_label}.{name}"] = Counter(repr(row) for row in rows)
    return tables


def label_at_random(trace: Trace, raters: Sequence[Rater], dice: random.Random, *, now: dt.datetime) -> None:
    """Let some raters label a trace. Sometimes a person then decides it, or requests one more label."""
    for rater in dice.sample(raters, dice.randint(1, 5)):
        label(rater, trace, dice.choice([ALL_GOOD, ALL_GOOD, EARLY, LATE]), now=now)
    state = Settlement.objects.get(pk=trace.pk)
    if state.n_readings > 1 and dice.random() < 0.3:
        adjudication.decide_trace(trace_id=trace.pk, first_error=1, by=factories.make_user(), now=NOW)
    elif state.state == "settled" and dice.random() < 0.3:
        adjudication.send_back_trace(trace_id=trace.pk, by=factories.make_user(), now=NOW)


def assert_same_tables(before: dict[str, Counter[str]], after: dict[str, Counter[str]]) -> None:
    assert before.keys() == after.keys()
    for name, rows in before.items():
        assert (name, rows - after[name]) == (name, Counter())
        if name.partition(".")[2] not in _MAY_GROW:
            assert (name, after[name] - rows) == (name, Counter())


@pytest.mark.fault
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    overlap=st.integers(1, 3),
    one_by_one=st.booleans(),
    reverse=st.booleans(),
    has_new_fit=st.booleans(),
)
def test_set_aside_and_undo_leaves_every_table_as_it_was(
    seed: int, overlap: int, one_by_one: bool, reverse: bool, has_new_fit: bool
) -> None:
    dice = random.Random(seed)
    project, traces = make_project(3, overlap=overlap, limit=overlap + 2)
    raters = submitted_work.make_raters(project, 5)
    for number, trace in enumerate(traces):
        label_at_random(trace, raters, dice, now=NOW + dt.timedelta(minutes=number))
    project_stats.compute_project_stats(project_id=project.pk, now=LATER)
    before = dump_tables()
    revisions = set(consensus.current_revisions(project_id=project.pk).values_list("trace", "revision"))
    chosen = [rater for rater in dice.sample(raters, 2) if rater.assignments.exists()]
    if one_by_one:
        made = [
            put_aside(rater, assignment_id=pk)
            for rater in chosen
            for pk in rater.assignments.values_list("pk", flat=True)
        ]
    else:
        made = [put_aside(rater) for rater in chosen]
    if has_new_fit:
        make_doubting_fit(project)
    for each in reversed(made) if reverse else made:
        undo(each)
    project_stats.compute_project_stats(project_id=project.pk, now=LATER)
    assert_same_tables(before, dump_tables())
    assert not SetAside.objects.filter(undone_at=None).exists()
    assert set(Job.objects.values_list("kind", flat=True)) <= {set_aside.KIND, rater_model.KIND}
    assert revisions == set(consensus.current_revisions(project_id=project.pk).values_list("trace", "revision"))


@pytest.mark.fault
def test_undo_ignores_a_newer_rater_model() -> None:
    project, [trace] = make_project()
    good, bad = submitted_work.make_raters(project, 2)
    label(good, trace, EARLY)
    label(bad, trace, EARLY)
    made = put_aside(bad)
    make_doubting_fit(project)
    undo(made)
    assert look(trace) == ("settled", "all_agree", 1)
    assert Consensus.objects.count() == 1
    assert not QueueEntry.objects.open().filter(trace=trace).exists()


# What counts without them


def test_votes_that_are_set_aside_judge_no_one() -> None:
    """Two find the same error, one finds none: for each of the two, the votes of the others are tied."""
    project, [trace] = make_project()
    good, also_good, bad = submitted_work.make_raters(project, 3)
    for rater, ratings in ((good, EARLY), (also_good, EARLY), (bad, ALL_GOOD)):
        label(rater, trace, ratings)

    def count() -> tuple[tuple[int, int], int]:
        assert not any(settlements.compute_drift(project_id=project.pk).values())
        (own,) = (row for row in settlements.load_rater_totals(project.pk) if row.rater_id == good.pk)
        return (own.compared, own.same), int(np.sum(error_breakdowns.compute_confusion(project.pk)["counts"]))

    before = count()
    assert before[0] == (0, 0)
    made = put_aside(bad)
    assert look(trace)[0] == "settled"
    assert count() == ((1, 1), 4)  # two steps by each of the two
    undo(made)
    assert count() == before


@pytest.mark.fault
def test_labels_that_are_set_aside_are_not_what_others_usually_do() -> None:
    project, traces = make_project(12, overlap=2)
    good, neutral = submitted_work.make_raters(project, 2)
    for trace in traces:
        label(good, trace, [1, 0, -1])
        label(neutral, trace, [0, 0, 0])
    usual = signals.compute_signals(project_id=project.pk)[good.pk]["neutral"].usual
    put_aside(neutral)
    found = signals.compute_signals(project_id=project.pk)
    assert usual == 1.0
    assert "neutral" not in found[good.pk]
    assert neutral.pk not in found


def test_trace_is_labeled_again_if_too_few_labels_remain() -> None:
    project, [trace] = make_project()
    good, bad, other = submitted_work.make_raters(project, 3)
    label(good, trace, EARLY)
    label(bad, trace, EARLY)
    assert look(trace) == ("settled", "all_agree", 1)
    assert remaining_work.count_remaining(project.pk).slots == 0
    put_aside(bad)
    assert (look(trace), count_free(trace)) == (("asked", "set_aside", 0), 1)
    assert remaining_work.count_remaining(project.pk).slots == 1
    tally = AgreementTally.objects.get()
    assert (tally.first_rater_id, tally.second_rater_id) == (good.pk, None)
    label(other, trace, EARLY)
    assert look(trace) == ("settled", "all_agree", 1)
    assert list(AgreementTally.objects.values_list("first_rater", "second_rater")) == [(good.pk, other.pk)]


def test_trace_is_settled_by_the_other_labels() -> None:
    project, [trace] = make_project()
    bad, *good = submitted_work.make_raters(project, 3)
    for rater, ratings in zip((bad, *good), (ALL_GOOD, EARLY, EARLY), strict=True):
        label(rater, trace, ratings)
    assert look(trace) == ("settled", "most_agree", 1)
    put_aside(bad)
    assert (look(trace), count_free(trace)) == (("settled", "all_agree", 2), 0)
    assert consensus.current_revisions(project_id=project.pk).get().n_votes == 2


def test_labels_asked_for_again_do_not_count_towards_the_limit() -> None:
    project, [trace] = make_project(overlap=2, limit=3)
    bad, *others = submitted_work.make_raters(project, 4)
    for rater, ratings in zip((bad, *others), (EARLY, EARLY, ALL_GOOD), strict=False):
        label(rater, trace, ratings)
    assert look(trace)[0] == "settled"
    put_aside(bad)
    assert (look(trace)[0], count_free(trace)) == ("asked", 1)
    label(others[2], trace, EARLY)
    assert look(trace)[0] == "settled"


@pytest.mark.fault
def test_label_whose_slot_was_taken_comes_back_as_extra() -> None:
    project, [trace] = make_project()
    good, bad, other = submitted_work.make_raters(project, 3)
    label(good, trace, EARLY)
    label(bad, trace, EARLY)
    made = put_aside(bad)
    label(other, trace, ALL_GOOD)
    undo(made)
    assert bad.assignments.get().population == "extra"
    assert look(trace)[:2] == ("settled", "most_agree")


def test_decision_of_a_person_stays_without_their_labels() -> None:
    project, [trace] = make_project()
    good, bad = submitted_work.make_raters(project, 2)
    label(good, trace, LATE)
    label(bad, trace, [0, 0, 0])
    adjudication.decide_trace(trace_id=trace.pk, first_error=2, by=factories.make_user(), now=NOW)
    assert [row[4] for row in consensus.current_revisions(project_id=project.pk).get().labels] == [2, 2, 2]
    made = put_aside(bad)
    assert look(trace)[:2] == ("decided", "decided")
    current = consensus.current_revisions(project_id=project.pk).get()
    assert [row[4] for row in current.labels] == [1, 1, 1]
    undo(made)
    assert consensus.current_revisions(project_id=project.pk).get().revision == 1
    assert Consensus.objects.count() == 2


def test_pay_and_gold_are_kept_and_the_decision_is_logged() -> None:
    project, [trace] = make_project()
    rater = factories.make_rater(project)
    label(rater, trace, EARLY)
    workdays.update_workdays(project_id=project.pk, now=NOW, from_first=True)
    paid = list(WorkDay.objects.values_list("rater", "readings", "paid_ms"))
    made = put_aside(rater)
    assert workdays.update_workdays(project_id=project.pk, now=NOW, from_first=True) == 0
    assert list(WorkDay.objects.values_list("rater", "readings", "paid_ms")) == paid != []
    undo(made)
    assert set_aside.undo_set_aside(set_aside=made, by=None, now=LATER) is False
    events = Event.objects.filter(subject=f"rater:{rater.pk}").order_by("pk").values_list("what", flat=True)
    assert [what for what in events if what.startswith("labels.")] == ["labels.set_aside", "labels.restored"]


def test_imported_labels_count_in_no_agreement_and_no_training_either() -> None:
    project, _ = make_project(0)
    load_lines(project, *(prm.make_line(problem="Twice?", labeler=name) for name in ("ann", "ben")))
    assert imported_labels.load_imported_labels(project.pk).mix.total() == 4
    assert generations.count_new_submissions(project) == 2
    put_aside(Rater.objects.get(project=project, labeler="ann"))
    labels = imported_labels.load_imported_labels(project.pk)
    assert (len(labels.raters), labels.mix.total()) == (1, 2)
    assert generations.count_new_submissions(project) == 1


def test_scopes_are_a_date_a_session_or_one_submission() -> None:
    project, traces = make_project(4)
    rater = factories.make_rater(project)
    minutes = (0, 10, 100, 110)
    made = [
        label(rater, trace, EARLY, now=NOW + dt.timedelta(minutes=at))
        for trace, at in zip(traces, minutes, strict=True)
    ]
    sessions = set_aside.list_sessions(rater_id=rater.pk)
    assert [each.n_labels for each in sessions] == [2, 2]
    until = NOW + dt.timedelta(minutes=105)

    def chosen(**scope: Any) -> list[int]:
        rows = set_aside.select_labels(LabelScope(rater.pk, **{"until": until, **scope})).order_by("submitted_at")
        return [made.index(row) for row in rows]

    assert chosen() == [0, 1, 2]
    assert chosen(since=NOW + dt.timedelta(minutes=5)) == [1, 2]
    assert chosen(since=sessions[1].since, until=sessions[1].until) == [0, 1]
    assert chosen(assignment_id=made[3].pk) == [3]
    put_aside(rater, assignment_id=made[0].pk)
    assert chosen() == [1, 2]
    with pytest.raises(set_aside.NothingToSetAside):
        put_aside(rater, assignment_id=made[0].pk)


@pytest.mark.fault
def test_preview_says_what_the_job_does() -> None:
    project, traces = make_project(4)
    bad, *good = submitted_work.make_raters(project, 3)
    plans = ((EARLY, EARLY), (ALL_GOOD, EARLY, EARLY), (ALL_GOOD, EARLY, ALL_GOOD), (EARLY,))
    for trace, plan in zip(traces, plans, strict=True):
        for rater, ratings in zip((bad, *good), plan, strict=False):
            label(rater, trace, ratings)
    impact = set_aside.measure_impact(project=project, scope=LabelScope(bad.pk, LATER))
    # The first is reopened, the second kept, the third reopened. The fourth was never settled.
    assert (impact.n_labels, impact.n_traces, impact.n_resolved) == (4, 4, 3)
    assert (impact.n_reopened, impact.n_kept, impact.n_changed) == (2, 1, 0)
    before = sum(map(count_free, traces))
    put_aside(bad)
    assert sum(map(count_free, traces)) - before == impact.n_missing == 3
    assert EarlierSettlement.objects.count() == 4


def test_undone_decision_is_not_carried_out_any_more() -> None:
    project, [trace] = make_project()
    rater = factories.make_rater(project)
    label(rater, trace, EARLY)
    scope = LabelScope(rater.pk, LATER)
    made = set_aside.set_aside_labels(project=project, scope=scope, reason="x", by=None, now=LATER)
    first = Job.objects.filter(kind=set_aside.KIND).latest("pk")
    undo(made)
    assert runner.run_job(first.pk, set_aside.chunks, clock=lambda: LATER) == "done"
    assert not Assignment.objects.filter(set_aside__isnull=False).exists()
