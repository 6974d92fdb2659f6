"""One contested trace as whoever decides reads it: what each reading said of each step, side by side. Reads alone, in a
fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

from django.db.models import QuerySet

from dashboard import majority, names, reading
from dashboard.reading import Rung
from labeling import numbering, quality
from labeling.models import Assignment, Gold, Guideline, Judgment, Settlement, Trace
from labeling.models.assignment import Purpose
from labeling.quality import first_errors
from people.models import Membership

QUEUED = 25  # traces that the list beside shows
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass
class Said:
    """What one reading said of one step."""

    rating: int | None
    comment: str = ""
    category: str = ""
    seconds: int | None = None
    is_flagged: bool = False

    @property
    def has_words(self) -> bool:
        return bool(self.comment or self.category or self.is_flagged)


@dataclass
class Voice:
    """One reading: who, where it saw the first error, how long it took."""

    letter: str
    name: str
    assignment: Assignment
    report: first_errors.Report | None
    error: int | None  # number of the step with the first error
    said: dict[int, Said] = field(default_factory=dict)  # by the step's position

    @property
    def seconds(self) -> int:
        return sum(each.seconds or 0 for each in self.said.values())


@dataclass
class Row:
    rung: Rung
    sayings: list[tuple[Voice, Said | None]]

    @property
    def is_split(self) -> bool:
        return len({said.rating for _, said in self.sayings if said and said.rating is not None}) > 1

    @property
    def is_open(self) -> bool:
        """Whether it takes a decision: they differ here, or one of them alone came so far and sees the error."""
        return self.is_split or any(said.rating == -1 for _, said in self.sayings if said)

    @property
    def words(self) -> list[tuple[Voice, Said]]:
        return [(voice, said) for voice, said in self.sayings if said and said.has_words]


@dataclass
class Case:
    trace: Trace
    settlement: Settlement
    voices: list[Voice]
    rows: list[Row]
    guideline: Guideline | None
    gold: Sequence[Gold]
    majority: str


def waiting(project_id: int) -> QuerySet[Settlement]:
    return quality.contested(project_id=project_id)


def case(settlement: Settlement, actor: Membership, *, with_names: bool) -> Case:
    trace = settlement.trace
    voices = voices_of(trace, actor, with_names=with_names)
    rungs = reading.rungs(trace)
    rows = [Row(rung, [(voice, voice.said.get(rung.position)) for voice in voices]) for rung in rungs]
    gold = list(Gold.objects.active().filter(trace=trace))
    return Case(trace, settlement, voices, rows, actor.project.guideline, gold, majority.told(trace, voices))


def voices_of(trace: Trace, actor: Membership, *, with_names: bool = False) -> list[Voice]:
    """Readings for work alone, in the order of their submission: not who was measured by it."""
    found = Assignment.objects.filter(trace=trace, purpose=Purpose.WORK, submitted_revision__gt=0)
    rows = list(found.select_related("rater__user").order_by("submitted_at", "pk"))
    latest = [(row.pk, row.submitted_revision) for row in rows]
    reports = {report.assignment_id: report for report in first_errors.of_revisions(latest)}
    numbers = numbering.of(trace_ids=[trace.pk])
    voices = {
        row.pk: Voice(
            letter,
            names.of(row.rater, actor) if with_names else "",
            row,
            report := reports.get(row.pk),
            reading.error_of(report, trace.pk, numbers),
        )
        for letter, row in zip(cycle(LETTERS), rows, strict=False)
    }
    for judgment in _judgments(voices):
        turn = judgment.turn
        voices[turn.assignment_id].said[turn.step.position] = Said(
            rating=judgment.rating,
            comment=" ".join(each for each in (judgment.reason, turn.comment) if each),
            category=judgment.category,
            seconds=None if turn.active_ms is None else round(turn.active_ms / 1000),
            is_flagged=bool(judgment.flagged),
        )
    return list(voices.values())


def _judgments(voices: dict[int, Voice]) -> list[Judgment]:
    """Of the steps' own texts, in the revisions that count."""
    latest = {pk: voice.assignment.submitted_revision for pk, voice in voices.items()}
    rows = Judgment.objects.filter(turn__assignment__in=latest, option__position=0).select_related("turn__step")
    return [row for row in rows if row.turn.revision == latest[row.turn.assignment_id]]
