"""The search for traces. One page examines a bounded number of rows, however many traces the project has."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.http import QueryDict

from dashboard import paging, trace_status
from dashboard.traces.forms import TraceSearchForm
from formats import integers
from labeling.models import FirstErrorReport, Gold, Project, QueueEntry, Trace
from labeling.models.assignment import OPEN_STATES
from labeling.models.consensus import Settlement, SettlementState
from labeling.models.trace import TraceQuerySet


@dataclass(frozen=True)
class TraceRow:
    trace: Trace
    settlement: Settlement | None
    why: str
    is_gold: bool


@dataclass(frozen=True)
class TraceSearchResult:
    page: paging.KeysetPage[Trace]
    rows: Sequence[TraceRow]
    is_search: bool


def search_traces(project: Project, form: TraceSearchForm, query: QueryDict) -> TraceSearchResult:
    """Return the page of traces that `query` names. An invalid search returns all traces."""
    filters = {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}
    everything = Trace.objects.filter(project=project)
    rows = everything
    for name, value in filters.items():
        rows = _FILTERS[name](rows, value)
    # Every trace has the same project: it is set below instead of joined.
    rows = rows.select_related("problem", "settlement").defer("problem__reference_solution")
    page = paging.paginate(rows, query, among=everything if filters else None)
    for trace in page.rows:
        trace.project = project
    return TraceSearchResult(page, _build_rows(page.rows), bool(filters))


def filter_unresolved_bad_reports(reports: QuerySet[FirstErrorReport]) -> QuerySet[FirstErrorReport]:
    """Keep reports of a bad problem whose trace is neither withdrawn nor settled."""
    settled = (SettlementState.SETTLED, SettlementState.DECIDED)
    rows = reports.filter(has_bad_problem=True, trace__withdrawn_at=None)
    return rows.exclude(trace__settlement__state__in=settled)


def _filter_by_words(rows: TraceQuerySet, words: str) -> TraceQuerySet:
    words = words.strip()
    by_number = Q(pk=integers.parse_integer(words.removeprefix("#")))
    return rows.filter(by_number | Q(ref=words) | Q(problem__text__icontains=words))


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


_FILTERS: dict[str, Callable[[TraceQuerySet, Any], TraceQuerySet]] = {
    "q": _filter_by_words,
    "state": _filter_by_state,
    "domain": lambda rows, domain: rows.filter(problem__domain__iexact=domain.strip()),
    "source": lambda rows, source: rows.filter(source=source),
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
