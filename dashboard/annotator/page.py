"""One rater as leads see them: their figures with what each means, their flags with the reasons, what they read last.
Reads alone; every page of their readings costs the same."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.utils.translation import gettext as _

from dashboard import paging, recent_activity
from dashboard.annotators import page as annotators_page
from dashboard.annotators.page import AnnotatorSummary
from dashboard.chart import Chart
from labeling import step_numbers
from labeling.models import Assignment, FirstErrorReport, GoldAnswer, Rater
from labeling.models.assignment import FinishReason
from labeling.models.consensus import SettlementState
from labeling.quality import consensus
from labeling.quality.submitted_readings import CENSORING_REASONS
from labeling.step_numbers import StepNumbers
from people.models import Membership

PAGE_SIZE = 25


@dataclass(frozen=True)
class SubmittedTrace:
    """One trace that they submitted."""

    assignment: Assignment
    found: str
    stands: str  # how it compares with what is known of the trace
    is_off: bool


@dataclass(frozen=True)
class AnnotatorPage:
    person: AnnotatorSummary
    bar: float | None
    days: Chart | None
    page: paging.KeysetPage[Assignment]
    reads: Sequence[SubmittedTrace]


def load_annotator(rater: Rater, actor: Membership, asked: QueryDict, now: dt.datetime) -> AnnotatorPage:
    submitted = Assignment.objects.submitted().filter(rater=rater)
    page = paging.paginate(
        submitted.select_related("trace__problem", "trace__settlement"), asked, size=PAGE_SIZE, is_scattered=True
    )
    person = annotators_page.load_annotator_summary(rater, actor, now)
    days = recent_activity.draw_activity_chart(person.lately) if person.lately else None
    return AnnotatorPage(person, actor.project.gold_bar, days, page, _load_submitted_traces(actor, page.rows))


def _load_submitted_traces(actor: Membership, rows: Sequence[Assignment]) -> list[SubmittedTrace]:
    traces = {row.trace_id for row in rows}
    reports = FirstErrorReport.objects.in_bulk([row.pk for row in rows])
    answers = {each.assignment_id: each for each in GoldAnswer.objects.filter(assignment__in=[row.pk for row in rows])}
    settled = dict(
        consensus.current_revisions(project_id=actor.project_id)
        .filter(trace__in=traces)
        .values_list("trace", "first_error")
    )
    numbers = step_numbers.load_step_numbers(trace_ids=traces)
    return [_build_submitted_trace(row, reports.get(row.pk), answers.get(row.pk), settled, numbers) for row in rows]


def _build_submitted_trace(
    row: Assignment,
    report: FirstErrorReport | None,
    answer: GoldAnswer | None,
    settled: dict[int, int | None],
    numbers: StepNumbers,
) -> SubmittedTrace:
    seen = answer.first_error if answer else report.first_error if report else None
    if answer is not None:
        is_off = answer.verdict != "right"
        stands = _("gold, %(use)s: %(verdict)s") % {
            "use": answer.get_use_display(),
            "verdict": answer.get_verdict_display(),
        }
    elif row.trace_id in settled:
        is_off = report is not None and not report.is_censored and seen != settled[row.trace_id]
        stands = _("settled: %(place)s") % {"place": _describe_place(row.trace_id, settled[row.trace_id], numbers)}
    else:
        settlement = getattr(row.trace, "settlement", None)
        is_off, stands = False, str(SettlementState(settlement.state).label) if settlement else "–"
    if row.finish_reason in CENSORING_REASONS:
        return SubmittedTrace(row, str(FinishReason(row.finish_reason).label), stands, is_off)
    return SubmittedTrace(row, _describe_place(row.trace_id, seen, numbers), stands, is_off)


def _describe_place(trace_id: int, position: int | None, numbers: StepNumbers) -> str:
    if position is None:
        return _("no error")
    return _("first error at step %(n)d") % {"n": numbers.at(trace_id, position)}
