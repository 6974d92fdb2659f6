"""One contested trace as whoever decides reads it: what each reading said of each step, side by side. Reads alone, in a
fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

from django.db.models import QuerySet

from dashboard import majority, rater_names
from dashboard.trace import page
from dashboard.trace.page import StepWithTexts
from labeling import step_numbers
from labeling.models import Assignment, Gold, Guideline, Judgment, Settlement, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.quality import submitted_readings
from labeling.quality.adjudication import list_contested
from people.models import Membership

MAX_QUEUED = 25  # traces that the list beside shows
RATER_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass
class StepOpinion:
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
class RaterOpinions:
    """One reading: who, where it saw the first error, how long it took."""

    letter: str
    name: str
    assignment: Assignment
    report: submitted_readings.RevisionReport | None
    error: int | None  # number of the step with the first error
    said: dict[int, StepOpinion] = field(default_factory=dict)  # by the step's position

    @property
    def seconds(self) -> int:
        return sum(each.seconds or 0 for each in self.said.values())


@dataclass
class AdjudicationStep:
    rung: StepWithTexts
    sayings: list[tuple[RaterOpinions, StepOpinion | None]]

    @property
    def is_split(self) -> bool:
        return len({said.rating for _, said in self.sayings if said and said.rating is not None}) > 1

    @property
    def is_open(self) -> bool:
        """Whether it takes a decision: they differ here, or one of them alone came so far and sees the error."""
        return self.is_split or any(said.rating == -1 for _, said in self.sayings if said)

    @property
    def words(self) -> list[tuple[RaterOpinions, StepOpinion]]:
        return [(voice, said) for voice, said in self.sayings if said and said.has_words]


@dataclass
class AdjudicationCase:
    trace: Trace
    settlement: Settlement
    voices: list[RaterOpinions]
    rows: list[AdjudicationStep]
    guideline: Guideline | None
    gold: Sequence[Gold]
    majority: str


def select_contested(project_id: int) -> QuerySet[Settlement]:
    return list_contested(project_id=project_id)


def load_case(settlement: Settlement, actor: Membership, *, with_names: bool) -> AdjudicationCase:
    trace = settlement.trace
    voices = load_rater_opinions(trace, actor, with_names=with_names)
    rungs = page.load_steps(trace)
    rows = [AdjudicationStep(rung, [(voice, voice.said.get(rung.position)) for voice in voices]) for rung in rungs]
    gold = list(Gold.objects.active().filter(trace=trace))
    return AdjudicationCase(
        trace, settlement, voices, rows, actor.project.guideline, gold, majority.describe_majority(trace, voices)
    )


def load_rater_opinions(trace: Trace, actor: Membership, *, with_names: bool = False) -> list[RaterOpinions]:
    """Readings for work alone, in the order of their submission: not who was measured by it."""
    found = Assignment.objects.filter(trace=trace, purpose=AssignmentPurpose.WORK, submitted_revision__gt=0)
    rows = list(found.select_related("rater__user").order_by("submitted_at", "pk"))
    latest = [(row.pk, row.submitted_revision) for row in rows]
    reports = {report.assignment_id: report for report in submitted_readings.load_revision_reports(latest)}
    numbers = step_numbers.load_step_numbers(trace_ids=[trace.pk])
    voices = {
        row.pk: RaterOpinions(
            letter,
            rater_names.get_display_name(row.rater, actor) if with_names else "",
            row,
            report := reports.get(row.pk),
            page.find_error_number(report, trace.pk, numbers),
        )
        for letter, row in zip(cycle(RATER_LETTERS), rows, strict=False)
    }
    for judgment in _load_judgments(voices):
        turn = judgment.turn
        voices[turn.assignment_id].said[turn.step.position] = StepOpinion(
            rating=judgment.rating,
            comment=" ".join(each for each in (judgment.reason, turn.comment) if each),
            category=judgment.category,
            seconds=None if turn.active_ms is None else round(turn.active_ms / 1000),
            is_flagged=bool(judgment.flagged),
        )
    return list(voices.values())


def _load_judgments(voices: dict[int, RaterOpinions]) -> list[Judgment]:
    """Of the steps' own texts, in the revisions that count."""
    latest = {pk: voice.assignment.submitted_revision for pk, voice in voices.items()}
    rows = Judgment.objects.filter(turn__assignment__in=latest, option__position=0).select_related("turn__step")
    return [row for row in rows if row.turn.revision == latest[row.turn.assignment_id]]
