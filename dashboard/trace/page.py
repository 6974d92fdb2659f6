"""One trace as a lead reads it: its steps, what the project stands behind, who read it and what they saw, what
happened to it. Reads alone, in a fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from django.db.models import Count, F, Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from dashboard import event_labels, rater_names, trace_status
from dashboard.event_labels import TraceEvent
from events.models import Event
from labeling.models import AddedSlot, Assignment, Consensus, Gold, Option, OptionPart, QueueEntry, Settlement, Trace
from labeling.models.assignment import AssignmentState
from labeling.quality import submitted_readings
from labeling.step_numbers import StepNumbers
from people.models import Membership

MAX_EVENTS = 200  # events that one page shows


@dataclass
class StepText:
    """One option of a step, with its parts."""

    option: Option
    parts: list[OptionPart] = field(default_factory=list)


@dataclass
class StepWithTexts:
    """One step with its texts: the trace's own first."""

    position: int
    kind: str
    is_rateable: bool
    texts: list[StepText]
    number: int | None = None  # as raters see it: context has none
    rating: int | None = None  # of the consensus


@dataclass(frozen=True)
class TraceReading:
    """One assignment with what its rater saw first."""

    assignment: Assignment
    name: str
    report: submitted_readings.RevisionReport | None
    error: int | None  # number of the step that it saw the first error in
    is_gold: bool
    n_rated: int  # steps, so far

    @property
    def is_open(self) -> bool:
        return self.assignment.state in (AssignmentState.HELD, AssignmentState.OPENED)


def load_steps(trace: Trace, consensus: Consensus | None = None) -> list[StepWithTexts]:
    found: dict[int, StepWithTexts] = {}
    options = Option.objects.filter(step__trace=trace).select_related("step").order_by("step__position", "position")
    texts = {}
    for option in options:
        step = option.step
        rung = found.setdefault(step.position, StepWithTexts(step.position, step.kind, step.is_rateable, []))
        texts[option.pk] = StepText(option)
        rung.texts.append(texts[option.pk])
    for part in OptionPart.objects.filter(option__step__trace=trace).defer("data").order_by("position"):
        texts[part.option_id].parts.append(part)
    for step, option, rating, *_more in consensus.labels if consensus else ():
        if option == 0 and step in found:
            found[step].rating = rating
    for number, rung in enumerate((each for each in found.values() if each.is_rateable), start=1):
        rung.number = number
    return list(found.values())


def load_trace_readings(trace: Trace, actor: Membership, numbers: StepNumbers) -> list[TraceReading]:
    mine = Assignment.objects.filter(trace=trace)
    rows: QuerySet[Assignment] = mine.select_related("rater__user", "guideline", "lane")
    is_rated = Q(turns__revision=F("revision"), turns__judgments__rating__isnull=False)
    assignments = list(rows.annotate(n_rated=Count("turns", filter=is_rated, distinct=True)).order_by("pk"))
    latest = [(row.pk, row.submitted_revision) for row in assignments if row.submitted_revision]
    reports = {report.assignment_id: report for report in submitted_readings.load_revision_reports(latest)}
    return [
        TraceReading(
            row,
            rater_names.get_display_name(row.rater, actor),
            report := reports.get(row.pk),
            find_error_number(report, trace.pk, numbers),
            row.purpose != "work",
            row.n_rated,
        )
        for row in assignments
    ]


def find_error_number(
    report: submitted_readings.RevisionReport | None, trace_id: int, numbers: StepNumbers
) -> int | None:
    """The number of the step that a reading saw the first error in."""
    return None if report is None or report.position is None else numbers.at(trace_id, report.position)


@dataclass(frozen=True)
class TraceStatus:
    """Where a trace stands, and why."""

    settlement: Settlement | None
    consensus: Consensus | None
    entries: Sequence[QueueEntry]
    gold: Sequence[Gold]
    added: Sequence[AddedSlot]
    why: str
    error: int | None  # number of the step with the first error, as the project stands behind it
    assisted: float | None  # probability of that place with machines and whoever saw scores among its readers
    accepted: Sequence[tuple[Gold, str]]  # each gold with where its error is seen, in words


def load_status(trace: Trace, numbers: StepNumbers) -> TraceStatus:
    entries = list(QueueEntry.objects.filter(trace=trace).select_related("lane", "draw").order_by("pk"))
    settlement = Settlement.objects.filter(trace=trace).first()
    consensus = Consensus.objects.filter(trace=trace).select_related("fit").order_by("-revision").first()
    gold = list(Gold.objects.active().filter(trace=trace).select_related("made_by").order_by("pk"))
    error = consensus.first_error if consensus else None
    return TraceStatus(
        settlement=settlement,
        consensus=consensus,
        entries=entries,
        gold=gold,
        added=list(AddedSlot.objects.filter(trace=trace).order_by("round")),
        why=trace_status.explain_trace_status(trace, settlement, entries),
        error=None if error is None else numbers.at(trace.pk, error),
        assisted=_read_assisted_probability(consensus),
        accepted=[(each, describe_accepted_errors(each, numbers)) for each in gold],
    )


def _read_assisted_probability(consensus: Consensus | None) -> float | None:
    if consensus is None or consensus.assisted_posterior is None:
        return None
    places = consensus.assisted_posterior
    return float(places[-1 if consensus.first_error is None else consensus.first_error])


def describe_accepted_errors(gold: Gold, numbers: StepNumbers) -> str:
    """Where the first error of a gold trace may be seen, in words."""
    return describe_error_places(gold.trace_id, gold.accepted_first_errors, numbers)


def describe_error_places(trace_id: int, first_errors: Sequence[int | None], numbers: StepNumbers) -> str:
    return ", ".join(
        _("no error") if place is None else _("step %(n)d") % {"n": numbers.at(trace_id, place)}
        for place in first_errors
    )


def load_history(
    trace: Trace, read: Sequence[TraceReading], actor: Membership, numbers: StepNumbers
) -> list[TraceEvent]:
    """What the log says of the trace and of everything that anybody did with it, the newest first."""
    subjects = [f"trace:{trace.pk}", *(f"assignment:{each.assignment.pk}" for each in read)]
    events = list(Event.objects.filter(subject__in=subjects).order_by("-pk")[:MAX_EVENTS])
    people = _load_user_names({event.by for event in events if event.by is not None})
    if not rater_names.can_see_names(actor):
        people.update({each.assignment.rater.user_id or 0: each.name for each in read})
    return [
        event_labels.describe_event(event, people.get(event.by or 0, ""), partial(numbers.at, trace.pk))
        for event in events
    ]


def _load_user_names(keys: set[int]) -> dict[int, str]:
    return {user.pk: str(user) for user in User.objects.filter(pk__in=keys)}
