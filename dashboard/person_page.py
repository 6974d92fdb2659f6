"""One rater as leads see them: their figures with what each means, their flags with the reasons, what they read last.
Reads alone; every page of their readings costs the same."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.utils.translation import gettext as _

from dashboard import annotators_page, lately, paging
from dashboard.annotators_page import Person
from dashboard.charts import Chart
from labeling import numbering
from labeling.models import Assignment, GoldAnswer, Rater, Report
from labeling.models.assignment import FinishReason
from labeling.models.consensus import SettlementState
from labeling.numbering import Numbers
from labeling.quality import consensus
from labeling.quality.first_errors import CENSORED
from people.models import Membership

SIZE = 25


@dataclass(frozen=True)
class Read:
    """One trace that they submitted."""

    assignment: Assignment
    found: str
    stands: str  # how it compares with what is known of the trace
    is_off: bool


@dataclass(frozen=True)
class Shown:
    person: Person
    bar: float | None
    days: Chart | None
    page: paging.Page[Assignment]
    reads: Sequence[Read]


def of(rater: Rater, actor: Membership, asked: QueryDict, now: dt.datetime) -> Shown:
    submitted = Assignment.objects.submitted().filter(rater=rater)
    page = paging.of(
        submitted.select_related("trace__problem", "trace__settlement"), asked, size=SIZE, is_scattered=True
    )
    person = annotators_page.one(rater, actor, now)
    days = lately.chart(person.lately) if person.lately else None
    return Shown(person, actor.project.gold_bar, days, page, _reads(actor, page.rows))


def _reads(actor: Membership, rows: Sequence[Assignment]) -> list[Read]:
    traces = {row.trace_id for row in rows}
    reports = Report.objects.in_bulk([row.pk for row in rows])
    answers = {each.assignment_id: each for each in GoldAnswer.objects.filter(assignment__in=[row.pk for row in rows])}
    settled = dict(
        consensus.current(project_id=actor.project_id).filter(trace__in=traces).values_list("trace", "first_error")
    )
    numbers = numbering.of(trace_ids=traces)
    return [_read(row, reports.get(row.pk), answers.get(row.pk), settled, numbers) for row in rows]


def _read(
    row: Assignment,
    report: Report | None,
    answer: GoldAnswer | None,
    settled: dict[int, int | None],
    numbers: Numbers,
) -> Read:
    seen = answer.first_error if answer else report.first_error if report else None
    if answer is not None:
        is_off = answer.verdict != "right"
        stands = _("gold, %(use)s: %(verdict)s") % {
            "use": answer.get_use_display(),
            "verdict": answer.get_verdict_display(),
        }
    elif row.trace_id in settled:
        is_off = report is not None and not report.is_censored and seen != settled[row.trace_id]
        stands = _("settled: %(place)s") % {"place": _place(row.trace_id, settled[row.trace_id], numbers)}
    else:
        settlement = getattr(row.trace, "settlement", None)
        is_off, stands = False, str(SettlementState(settlement.state).label) if settlement else "–"
    if row.finish_reason in CENSORED:
        return Read(row, str(FinishReason(row.finish_reason).label), stands, is_off)
    return Read(row, _place(row.trace_id, seen, numbers), stands, is_off)


def _place(trace_id: int, position: int | None, numbers: Numbers) -> str:
    if position is None:
        return _("no error")
    return _("first error at step %(n)d") % {"n": numbers.at(trace_id, position)}
