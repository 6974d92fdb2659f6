"""The page of one trace: its steps, consensus and state, its assignments, its history. A fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django.db.models import Count, F, Q, QuerySet

from accounts.models import User
from dashboard import event_labels, rater_names, trace_status, trace_steps
from dashboard.event_labels import TraceEvent
from events.models import Event
from labeling.models import Assignment, Consensus, Gold, QueueEntry, Settlement, Trace
from labeling.models.assignment import OPEN_STATES
from labeling.quality import submitted_reports
from labeling.step_numbers import StepNumbers
from people.models import Membership

MAX_EVENTS = 200  # shown on one page


@dataclass(frozen=True)
class TraceReading:
    """One assignment, with the first error of its submission."""

    assignment: Assignment
    name: str
    report: submitted_reports.RevisionReport | None
    error: int | None  # number of the step with the first error
    n_rated: int  # steps rated so far

    @property
    def is_open(self) -> bool:
        return self.assignment.state in OPEN_STATES


@dataclass(frozen=True)
class TraceStatus:
    """The state of a trace, and the reason."""

    settlement: Settlement | None
    consensus: Consensus | None
    entries: Sequence[QueueEntry]
    gold: Sequence[tuple[Gold, str]]  # with its accepted first errors in words
    why: str
    error: int | None  # number of the step with the first error, by consensus
    assisted: float | None  # probability of that error when machines and raters who saw scores also count


def load_trace_readings(trace: Trace, actor: Membership, numbers: StepNumbers) -> list[TraceReading]:
    is_rated = Q(turns__revision=F("revision"), turns__judgments__rating__isnull=False)
    rows: QuerySet[Assignment] = Assignment.objects.filter(trace=trace).select_related("rater__user", "lane")
    assignments = list(rows.annotate(n_rated=Count("turns", filter=is_rated, distinct=True)).order_by("pk"))
    latest = [(row.pk, row.submitted_revision) for row in assignments if row.submitted_revision]
    reports = {report.assignment_id: report for report in submitted_reports.load_revision_reports(latest)}
    return [
        TraceReading(
            assignment=row,
            name=rater_names.get_display_name(row.rater, actor),
            report=(report := reports.get(row.pk)),
            error=trace_steps.find_error_number(report, trace.pk, numbers),
            n_rated=row.n_rated,
        )
        for row in assignments
    ]


def load_status(trace: Trace, numbers: StepNumbers) -> TraceStatus:
    entries = list(QueueEntry.objects.filter(trace=trace).select_related("lane", "draw").order_by("pk"))
    settlement = Settlement.objects.filter(trace=trace).first()
    consensus = Consensus.objects.filter(trace=trace).select_related("fit").order_by("-revision").first()
    gold = Gold.objects.active().filter(trace=trace).select_related("made_by").order_by("pk")
    error = consensus.first_error if consensus else None
    return TraceStatus(
        settlement=settlement,
        consensus=consensus,
        entries=entries,
        gold=[(row, trace_steps.describe_accepted_errors(row, numbers)) for row in gold],
        why=trace_status.explain_trace_status(trace, settlement, entries),
        error=None if error is None else numbers.at(trace.pk, error),
        assisted=_read_assisted_probability(consensus),
    )


def _read_assisted_probability(consensus: Consensus | None) -> float | None:
    if consensus is None or consensus.assisted_posterior is None:
        return None
    return float(consensus.assisted_posterior[-1 if consensus.first_error is None else consensus.first_error])


def load_history(
    trace: Trace, readings: Sequence[TraceReading], actor: Membership, numbers: StepNumbers
) -> list[TraceEvent]:
    """Load the logged events of a trace and of its assignments, newest first."""
    subjects = [f"trace:{trace.pk}", *(f"assignment:{reading.assignment.pk}" for reading in readings)]
    events = list(Event.objects.filter(subject__in=subjects).order_by("-pk")[:MAX_EVENTS])
    users = User.objects.filter(pk__in={event.by for event in events if event.by is not None})
    names = {user.pk: str(user) for user in users}
    if not rater_names.can_see_names(actor):
        names.update({reading.assignment.rater.user_id or 0: reading.name for reading in readings})
    return [
        event_labels.describe_event(event, names.get(event.by or 0, ""), partial(numbers.at, trace.pk))
        for event in events
    ]
