"""Looks for traces. Reads alone; however many there are, a page looks through so many and no more."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from dashboard import paging, trace_status
from formats import integers
from labeling.models import FirstErrorReport, Gold, Project, QueueEntry, Trace
from labeling.models.assignment import OPEN_STATES
from labeling.models.consensus import Settlement, SettlementState
from labeling.models.trace import TraceQuerySet

STATE_CHOICES = (
    ("", _("any state")),
    ("unread", _("not read yet")),
    ("in_hand", _("in somebody’s hands")),
    *((state.value, state.label) for state in SettlementState if state is not SettlementState.LIVE),
    ("bad_problem", _("reported as a bad problem")),
    ("gold", _("gold")),
    ("withdrawn", _("withdrawn")),
)


class TraceSearchForm(forms.Form):
    q = forms.CharField(label=_("Number, reference or words of the problem"), max_length=200, required=False)
    state = forms.ChoiceField(label=_("State"), choices=STATE_CHOICES, required=False)
    domain = forms.CharField(label=_("Domain"), max_length=100, required=False)
    source = forms.IntegerField(required=False, min_value=1, max_value=2**62, widget=forms.HiddenInput)


@dataclass(frozen=True)
class TraceRow:
    """One line of the list."""

    trace: Trace
    settlement: Settlement | None
    why: str
    is_gold: bool


@dataclass(frozen=True)
class TraceSearchResult:
    page: paging.KeysetPage[Trace]
    rows: Sequence[TraceRow]
    is_search: bool


def search_traces(project: Project, asked: QueryDict) -> TraceSearchResult:
    form = TraceSearchForm(asked)
    wanted = {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}
    everything = Trace.objects.filter(project=project)
    rows = everything
    for name, value in wanted.items():
        rows = _FILTERS[name](rows, value)
    # Every trace has the same project: it is set below instead of joined.
    whole = rows.select_related("problem", "settlement").defer("problem__reference_solution")
    page = paging.paginate(whole, asked, among=everything if wanted else None)
    for trace in page.rows:
        trace.project = project
    return TraceSearchResult(page, _build_rows(page.rows), bool(wanted))


def filter_unresolved_bad_reports(reports: QuerySet[FirstErrorReport]) -> QuerySet[FirstErrorReport]:
    """Of these, the readings that call the problem bad, as long as nothing came of it: neither was the trace withdrawn,
    nor does anybody stand behind a first error."""
    settled = (SettlementState.SETTLED, SettlementState.DECIDED)
    rows = reports.filter(has_bad_problem=True, trace__withdrawn_at=None)
    return rows.exclude(trace__settlement__state__in=settled)


def _filter_by_words(rows: TraceQuerySet, q: str) -> TraceQuerySet:
    by_number = Q(pk=integers.parse_integer(q.strip().removeprefix("#")))
    return rows.filter(by_number | Q(ref=q.strip()) | Q(problem__text__icontains=q.strip()))


def _filter_by_state(rows: TraceQuerySet, state: str) -> TraceQuerySet:
    if state == "unread":
        return rows.available().filter(settlement=None)
    if state == "in_hand":
        return rows.filter(assignments__state__in=OPEN_STATES).distinct()
    if state == "bad_problem":
        return rows.filter(pk__in=filter_unresolved_bad_reports(FirstErrorReport.objects.all()).values("trace"))
    if state == "gold":
        return rows.filter(gold__retired_at=None, gold__isnull=False).distinct()
    if state == "withdrawn":
        return rows.filter(withdrawn_at__isnull=False)
    return rows.filter(settlement__state=state)


def _filter_by_domain(rows: TraceQuerySet, domain: str) -> TraceQuerySet:
    return rows.filter(problem__domain__iexact=domain.strip())


def _filter_by_source(rows: TraceQuerySet, source: int) -> TraceQuerySet:
    return rows.filter(source=source)


_FILTERS: dict[str, Callable[[TraceQuerySet, Any], TraceQuerySet]] = {
    "q": _filter_by_words,
    "state": _filter_by_state,
    "domain": _filter_by_domain,
    "source": _filter_by_source,
}


def _build_rows(traces: Sequence[Trace]) -> list[TraceRow]:
    keys = [trace.pk for trace in traces]
    entries = defaultdict(list)
    for entry in QueueEntry.objects.filter(trace__in=keys).select_related("lane").order_by("pk"):
        entries[entry.trace_id].append(entry)
    gold = set(Gold.objects.active().filter(trace__in=keys).values_list("trace_id", flat=True))
    return [
        TraceRow(
            trace, settlement, trace_status.explain_trace_status(trace, settlement, entries[trace.pk]), trace.pk in gold
        )
        for trace in traces
        for settlement in [getattr(trace, "settlement", None)]
    ]
