"""A rater is compared with the votes of the others, never with their own."""

import random
from collections import Counter

import pytest

from labeling.models import FirstErrorReport, Project, ReportCount, Settlement, Trace
from labeling.quality import adjudication, error_breakdowns, resolve
from tests import factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db


def settle_votes(project: Project, *submissions: list[int]) -> Trace:
    trace = factories.make_trace(project, ["One.", "Two.", "Three."])
    for rater, ratings in zip(submitted_work.make_raters(project, len(submissions)), submissions, strict=True):
        submitted_work.submit_trace(rater, trace, ratings)
    resolve.resolve_due_traces(now=factories.NOW)
    return trace


def list_totals() -> list[tuple[int, int, int]]:
    return list(ReportCount.objects.order_by("rater").values_list("compared", "same", "missed"))


def test_two_of_three_are_not_compared_with_a_tie() -> None:
    """Each of the two who settle the trace sees a tie among the others. The third one missed the error of the two."""
    project = factories.make_project(overlap=3)
    settle_votes(project, [1, -1], [1, -1], [1, 1, 1])
    assert Settlement.objects.get().state == "settled"
    assert list_totals() == [(0, 0, 0), (0, 0, 0), (1, 0, 1)]
    found = error_breakdowns.compute_confusion(project.pk)
    assert found["counts"] == [[0, 0, 1], [0, 0, 0], [0, 0, 1]]
    assert (found["over_credit"]["value"], found["over_credit"]["n"], found["n_traces"]) == (1.0, 1, 1)
    assert found["recall"]["-1"]["value"] == 0.0


def test_label_before_the_error_is_that_of_the_others() -> None:
    """If the rater's own rating counted, the first step would be settled positive by two against one."""
    project = factories.make_project(overlap=2)
    settle_votes(project, [1, -1], [0, -1])
    assert list_totals() == [(1, 1, 0), (1, 1, 0)]
    assert error_breakdowns.compute_confusion(project.pk)["counts"] == [[2, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_decision_of_a_person_is_compared_with_everyone() -> None:
    project = factories.make_project(overlap=2, overlap_limit=2)
    trace = settle_votes(project, [1, -1], [1, 1, -1])
    adjudication.decide_trace(trace_id=trace.pk, first_error=1, by=factories.make_user(), now=factories.NOW)
    assert list_totals() == [(1, 1, 0), (1, 0, 1)]
    assert error_breakdowns.compute_confusion(project.pk)["counts"] == [[1, 0, 1], [0, 0, 0], [0, 0, 2]]


@pytest.mark.fault
def test_totals_equal_a_count_by_hand() -> None:
    dice = random.Random(1)
    project = factories.make_project(overlap=2, overlap_limit=5)
    crowd = submitted_work.make_raters(project, 5)
    for _ in range(25):
        trace = factories.make_trace(project, ["One.", "Two.", "Three."])
        for rater in dice.sample(crowd, dice.choice([1, 2, 3, 5])):
            if dice.random() < 0.1:
                submitted_work.give_up(rater, trace, [1])
            else:
                submitted_work.submit_trace(rater, trace, dice.choice([[-1], [1, -1], [1, -1], [1, 1, 1]]))
    resolve.resolve_due_traces(now=factories.NOW)
    resolved = set(Settlement.objects.filter(state="settled").values_list("trace", flat=True))
    expected: dict[int, list[int]] = {rater.pk: [0, 0, 0] for rater in crowd}
    for own in FirstErrorReport.objects.filter(trace__in=resolved, is_censored=False):
        others = FirstErrorReport.objects.filter(trace=own.trace_id, is_censored=False).exclude(rater=own.rater_id)
        ranked = Counter(others.values_list("first_error", flat=True)).most_common(2)
        if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
            continue
        place = ranked[0][0]
        is_missed = place is not None and (own.first_error is None or own.first_error > place)
        for at, n in enumerate((1, own.first_error == place, is_missed)):
            expected[own.rater_id][at] += n
    rows = {row.rater_id: [row.compared, row.same, row.missed] for row in ReportCount.objects.all()}
    assert rows == expected
    assert sum(row[0] for row in expected.values()) > 20
