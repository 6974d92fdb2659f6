"""The page of one annotator: figures, flags, and a page of submissions at a constant cost."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.utils.translation import gettext as _

from dashboard import paging, recent_activity
from dashboard.annotators.page import AnnotatorSummary, load_annotator_summary
from dashboard.chart import Chart
from labeling import step_numbers
from labeling.models import Assignment, FirstErrorReport, GoldAnswer, Rater
from labeling.models.assignment import FinishReason
from labeling.models.consensus import SettlementState
from labeling.quality import consensus
from labeling.quality.submitted_reports import CENSORING_REASONS
from labeling.step_numbers import StepNumbers
from people.models import Membership

PAGE_SIZE = 25


@dataclass(frozen=True)
class SubmittedTrace:
    assignment: Assignment
    result: str
    known: str  # the gold verdict, the consensus, or the state of the trace
    differs: bool


@dataclass(frozen=True)
class AnnotatorPage:
    person: AnnotatorSummary
    threshold: float | None
    days: Chart | None
    page: paging.KeysetPage[Assignment]
    submissions: Sequence[SubmittedTrace]


def load_annotator(rater: Rater, actor: Membership, query: QueryDict, now: dt.datetime) -> AnnotatorPage:
    submitted = Assignment.objects.submitted().filter(rater=rater)
    page = paging.paginate(
        submitted.select_related("trace__problem", "trace__settlement"), query, size=PAGE_SIZE, is_scattered=True
    )
    person = load_annotator_summary(rater, actor, now)
    days = recent_activity.draw_activity_chart(person.activity) if person.activity else None
    return AnnotatorPage(person, actor.project.gold_bar, days, page, _load_submitted_traces(actor, page.rows))


def _load_submitted_traces(actor: Membership, rows: Sequence[Assignment]) -> list[SubmittedTrace]:
    keys, traces = [row.pk for row in rows], {row.trace_id for row in rows}
    reports = FirstErrorReport.objects.in_bulk(keys)
    answers = {answer.assignment_id: answer for answer in GoldAnswer.objects.filter(assignment__in=keys)}
    revisions = consensus.current_revisions(project_id=actor.project_id).filter(trace__in=traces)
    settled = dict(revisions.values_list("trace", "first_error"))
    numbers = step_numbers.load_step_numbers(trace_ids=traces)
    return [_build_submitted_trace(row, reports.get(row.pk), answers.get(row.pk), settled, numbers) for row in rows]


def _build_submitted_trace(
    row: Assignment,
    report: FirstErrorReport | None,
    answer: GoldAnswer | None,
    settled: dict[int, int | None],
    numbers: StepNumbers,
) -> SubmittedTrace:
    position = answer.first_error if answer else report.first_error if report else None
    if answer is not None:
        differs = answer.verdict != "right"
        known = _("gold, %(use)s: %(verdict)s") % {
            "use": answer.get_use_display(),
            "verdict": answer.get_verdict_display(),
        }
    elif row.trace_id in settled:
        differs = report is not None and not report.is_censored and position != settled[row.trace_id]
        known = _("settled: %(result)s") % {"result": _describe_result(row.trace_id, settled[row.trace_id], numbers)}
    else:
        settlement = getattr(row.trace, "settlement", None)
        differs, known = False, str(SettlementState(settlement.state).label) if settlement else "–"
    if row.finish_reason in CENSORING_REASONS:
        return SubmittedTrace(row, str(FinishReason(row.finish_reason).label), known, differs)
    return SubmittedTrace(row, _describe_result(row.trace_id, position, numbers), known, differs)


def _describe_result(trace_id: int, position: int | None, numbers: StepNumbers) -> str:
    if position is None:
        return _("no error")
    return _("first error at step %(n)d") % {"n": numbers.at(trace_id, position)}
