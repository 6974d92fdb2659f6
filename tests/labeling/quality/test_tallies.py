"""Tallies against counts of the ratings."""

import datetime as dt
from functools import partial
from typing import Any

import pytest

from labeling.models import AgreementTally, Assignment, Project, Rater, Settlement, Trace
from labeling.quality.tallies import COUNTERS, recount_tallies
from tests import factories
from tests.concurrency import run_at_once
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return factories.make_project()


@pytest.fixture
def trace(project: Project) -> Trace:
    return factories.make_trace(project, ["One.", "Two.", "Three.", "Four."])


def counted(trace: Trace) -> dict[str, int]:
    """Return the nonzero counters, over all kinds of steps."""
    rows = AgreementTally.objects.filter(trace=trace).values(*COUNTERS)
    totals = {name: sum(row[name] for row in rows) for name in COUNTERS}
    return {name: total for name, total in totals.items() if total}


def ends(trace: Trace) -> tuple[object, ...]:
    return AgreementTally.objects.values_list(
        "n_steps", "first_end", "is_first_censored", "second_end", "is_second_censored"
    )[0]


def test_tally_of_one_and_two_submissions(project: Project, trace: Trace) -> None:
    first, second = submitted_work.make_raters(project, 2)
    submitted_work.submit_trace(first, trace, [1, 0, 1, -1])
    assert counted(trace) == {"neutral": 1, "positive": 2, "negative": 1}
    assert ends(trace) == (4, 3, False, None, None)
    submitted_work.submit_trace(second, trace, [1, 1, -1])
    assert counted(trace) == {"positive_positive": 1, "neutral_positive": 1, "negative_positive": 1, "negative": 1}
    assert ends(trace) == (4, 3, False, 2, False)
    tally = AgreementTally.objects.get()
    assert (tally.first_rater, tally.second_rater, tally.problem_id) == (first, second, trace.problem_id)


def test_tally_uses_headline_submissions_only(project: Project, trace: Trace) -> None:
    everybody = submitted_work.make_raters(project, 6)
    kinds: list[dict[str, Any]] = [
        {"population": "opinion"},
        {"population": "extra"},
        {"is_assisted": True},
        {"purpose": "gold"},
        {},
        {},
    ]
    for rater, fields in zip(everybody, kinds, strict=True):
        submitted_work.submit_trace(rater, trace, [1, 1, 1, 1], **fields)
    assert counted(trace) == {"positive_positive": 4}
    tally = AgreementTally.objects.get()
    assert {tally.first_rater, tally.second_rater} == set(everybody[4:])
    submitted_work.submit_trace(factories.make_rater(project), trace, [-1])  # scheduled, and the third
    assert counted(trace) == {"positive_positive": 4}


@pytest.mark.parametrize("is_of_a_file", [True, False])
def test_tally_excludes_imported_labels_and_machines(
    is_of_a_file: bool, project: Project, trace: Trace, now: dt.datetime
) -> None:
    """Imported labels can belong to a member."""
    brought, first, second = submitted_work.make_raters(project, 3)
    for rater, ratings in ((brought, [-1]), (first, [1, 1, 1, 1]), (second, [1, 1, 1, 1])):
        submitted_work.submit_trace(rater, trace, ratings)
    assert AgreementTally.objects.get().first_rater == brought
    if is_of_a_file:
        Assignment.objects.filter(rater=brought).update(origin="imported")
    else:
        Rater.objects.filter(pk=brought.pk).update(kind="imported", user=None)
    assert recount_tallies(trace_ids=[trace.pk], now=now) == 1
    assert counted(trace) == {"positive_positive": 4}


def test_bad_problem_is_censored(project: Project, trace: Trace) -> None:
    first, second = submitted_work.make_raters(project, 2)
    submitted_work.submit_trace(first, trace, [1, 1, 1, 1])
    submitted_work.report_problem(second, trace)
    assert ends(trace) == (4, 4, False, 0, True)


def test_tally_uses_the_first_revision(project: Project, trace: Trace) -> None:
    first, second = submitted_work.make_raters(project, 2)
    assignment = submitted_work.submit_trace(first, trace, [1, 1, 1, 1])
    submitted_work.submit_trace(second, trace, [1, 1, 1, -1])
    before = counted(trace)
    submitted_work.correct_step(assignment, 3, -1)
    assert counted(trace) == before == {"positive_positive": 3, "negative_positive": 1}


def test_recount_keeps_the_order_after_corrections(project: Project, trace: Trace, now: dt.datetime) -> None:
    first, second, third = submitted_work.make_raters(project, 3)
    corrected = submitted_work.submit_trace(first, trace, [1, 1, 1, 1])
    for rater in (second, third):
        submitted_work.submit_trace(rater, trace, [1, -1])
    submitted_work.correct_step(corrected, 0, -1)
    assert recount_tallies(trace_ids=[trace.pk], now=now) == 0
    tally = AgreementTally.objects.get()
    assert (tally.first_rater, tally.second_rater, tally.first_end) == (first, second, 4)


def test_giving_up_is_censored(project: Project, trace: Trace) -> None:
    first, second = submitted_work.make_raters(project, 2)
    submitted_work.submit_trace(first, trace, [1, 1, 1, 1])
    submitted_work.give_up(second, trace, [1, 1])
    assert ends(trace) == (4, 4, False, 2, True)
    assert counted(trace) == {"positive_positive": 2, "positive": 2}


def test_tally_marks_two_guidelines(project: Project, trace: Trace, now: dt.datetime) -> None:
    versions = [project.guidelines.create(version=n, body="Look.", published_at=now) for n in (1, 2)]
    for rater, guideline in zip(submitted_work.make_raters(project, 2), versions, strict=True):
        submitted_work.submit_trace(rater, trace, [-1], guideline=guideline)
    tally = AgreementTally.objects.get()
    assert (tally.guideline, tally.has_two_guidelines) == (versions[0], True)


def test_tally_marks_the_trace_as_due(project: Project, trace: Trace) -> None:
    first, second = submitted_work.make_raters(project, 2)
    assignment = submitted_work.submit_trace(first, trace, [1, 1, 1, 1])
    for again in (
        partial(submitted_work.submit_trace, second, trace, [-1]),
        partial(submitted_work.correct_step, assignment, 0, -1),
    ):
        Settlement.objects.update(is_due=False)
        again()
        assert Settlement.objects.get(pk=trace.pk).is_due


def test_recount_finds_manual_changes(project: Project, now: dt.datetime) -> None:
    traces = [factories.make_trace(project) for _ in range(4)]
    for rater in submitted_work.make_raters(project, 2):
        for trace in traces:
            submitted_work.submit_trace(rater, trace, [1, -1])
    ids = [trace.pk for trace in traces]
    assert recount_tallies(trace_ids=ids, now=now) == 0
    AgreementTally.objects.filter(trace=traces[0]).update(negative_negative=7)
    AgreementTally.objects.filter(trace=traces[1]).delete()
    AgreementTally.objects.filter(trace=traces[2]).update(step_kind="action")
    assert recount_tallies(trace_ids=ids, now=now) == 3
    assert {tuple(counted(trace).items()) for trace in traces} == {(("negative_negative", 1), ("positive_positive", 1))}


@pytest.mark.usefixtures("real_connections")
@pytest.mark.fault
def test_concurrent_submits_are_all_counted(now: dt.datetime) -> None:
    """Two raters submit the same trace at the same moment, for several traces: every submission is counted, and none as
    a third one."""
    project = factories.make_project()
    traces = [factories.make_trace(project, ["One.", "Two."]) for _ in range(4)]
    everybody = submitted_work.make_raters(project, 3)
    outcomes = run_at_once(
        *[partial(submitted_work.submit_trace, rater, trace, [1, -1]) for trace in traces for rater in everybody],
    )
    assert not [each for each in outcomes if isinstance(each, Exception)], outcomes
    for trace in traces:
        assert counted(trace) == {"positive_positive": 1, "negative_negative": 1}
    assert recount_tallies(trace_ids=[trace.pk for trace in traces], now=now) == 0
