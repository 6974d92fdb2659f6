"""One trace as a lead reads it: its steps, what the project stands behind, who read it and what they saw, what
happened to it. Reads alone, in a fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from accounts.models import User
from dashboard import names, reasons
from events.models import Event
from labeling.models import AddedSlot, Assignment, Consensus, Gold, Option, Part, QueueEntry, Settlement, Trace
from labeling.models.assignment import AssignmentState
from labeling.quality import first_errors
from people.models import Membership

HISTORY = 200  # events that one page shows


@dataclass
class Text:
    """One option of a step, with its parts."""

    option: Option
    parts: list[Part] = field(default_factory=list)


@dataclass
class Rung:
    """One step with its texts: the trace's own first."""

    position: int
    kind: str
    is_rateable: bool
    texts: list[Text]
    rating: int | None = None  # of the consensus

    @property
    def number(self) -> int:
        return self.position + 1


@dataclass(frozen=True)
class Reading:
    """One assignment with what its rater saw first."""

    assignment: Assignment
    name: str
    report: first_errors.Report | None
    is_gold: bool

    @property
    def is_open(self) -> bool:
        return self.assignment.state in (AssignmentState.HELD, AssignmentState.OPENED)


@dataclass(frozen=True)
class Happened:
    event: Event
    by: str


def rungs(trace: Trace, consensus: Consensus | None = None) -> list[Rung]:
    found: dict[int, Rung] = {}
    options = Option.objects.filter(step__trace=trace).select_related("step").order_by("step__position", "position")
    texts = {}
    for option in options:
        step = option.step
        rung = found.setdefault(step.position, Rung(step.position, step.kind, step.is_rateable, []))
        texts[option.pk] = Text(option)
        rung.texts.append(texts[option.pk])
    for part in Part.objects.filter(option__step__trace=trace).defer("data").order_by("position"):
        texts[part.option_id].parts.append(part)
    for step, option, rating, *_ in consensus.labels if consensus else ():
        if option == 0 and step in found:
            found[step].rating = rating
    return list(found.values())


def readings(trace: Trace, actor: Membership) -> list[Reading]:
    rows = Assignment.objects.filter(trace=trace).select_related("rater__user", "guideline", "lane")
    assignments = list(rows.order_by("pk"))
    latest = [(row.pk, row.submitted_revision) for row in assignments if row.submitted_revision]
    reports = {report.assignment_id: report for report in first_errors.of_revisions(latest)}
    return [Reading(row, names.of(row.rater, actor), reports.get(row.pk), row.purpose != "work") for row in assignments]


@dataclass(frozen=True)
class Standing:
    """Where a trace stands, and why."""

    settlement: Settlement | None
    consensus: Consensus | None
    entries: Sequence[QueueEntry]
    gold: Sequence[Gold]
    added: Sequence[AddedSlot]
    why: str


def standing(trace: Trace) -> Standing:
    entries = list(QueueEntry.objects.filter(trace=trace).select_related("lane", "draw").order_by("pk"))
    settlement = Settlement.objects.filter(trace=trace).first()
    return Standing(
        settlement=settlement,
        consensus=Consensus.objects.filter(trace=trace).select_related("fit").order_by("-revision").first(),
        entries=entries,
        gold=list(Gold.objects.filter(trace=trace, retired_at=None).select_related("made_by").order_by("pk")),
        added=list(AddedSlot.objects.filter(trace=trace).order_by("round")),
        why=reasons.why(trace, settlement, entries),
    )


def history(trace: Trace, read: Sequence[Reading], actor: Membership) -> list[Happened]:
    """What the log says of the trace and of everything that anybody did with it, the newest first."""
    subjects = [f"trace:{trace.pk}", *(f"assignment:{each.assignment.pk}" for each in read)]
    events = list(Event.objects.filter(subject__in=subjects).order_by("-pk")[:HISTORY])
    people = _people({event.by for event in events if event.by is not None})
    if not names.sees_names(actor):
        people.update({each.assignment.rater.user_id or 0: each.name for each in read})
    return [Happened(event, people.get(event.by or 0, "")) for event in events]


def _people(keys: set[int]) -> dict[int, str]:
    return {user.pk: str(user) for user in User.objects.filter(pk__in=keys)}
