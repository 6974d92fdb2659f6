"""The submissions of one trace side by side: what each rater said about each step, and the majority in a sentence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import NamedTuple, Protocol

from django.utils.translation import gettext as _

from charts import number_format
from dashboard import rater_names, trace_steps
from labeling import step_numbers
from labeling.models import Assignment, Judgment, Project, StepReview, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterKind
from labeling.models.trace import TraceKind
from labeling.projects import rating_rules, trace_questions
from labeling.projects.trace_questions import NamedAnswer
from labeling.quality import submitted_reports
from people.models import Membership
from stats import label_votes

RATER_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class StepOpinion:
    """The rating and comment of one submission for one step."""

    rating: int | None
    comment: str = ""
    category: str = ""
    error_link: str = ""  # the mark of how the step relates to an earlier error
    severity: str = ""
    seconds: int | None = None
    is_flagged: bool = False
    evidence: Sequence[str] = ()  # quotes of the step
    clauses: Sequence[str] = ()  # that the rating cites
    missing: str = ""  # what the trace leaves out after the step

    @property
    def has_words(self) -> bool:
        explained = self.comment or self.category or self.error_link or self.severity or self.evidence or self.missing
        return bool(explained or self.clauses or self.is_flagged)


@dataclass
class RaterOpinions:
    """One submission: its rater, the step with its first error, and its opinion of each step."""

    letter: str
    name: str
    assignment: Assignment
    report: submitted_reports.RevisionReport | None
    error: int | None  # number of the step with the first error
    by_step: dict[int, StepOpinion] = field(default_factory=dict)  # by the step's position
    answers: Sequence[NamedAnswer] = ()  # on the whole trace

    @property
    def seconds(self) -> int:
        return sum(opinion.seconds or 0 for opinion in self.by_step.values())


def load_rater_opinions(trace: Trace, actor: Membership, *, with_names: bool = False) -> list[RaterOpinions]:
    """Load the submissions that count as work, oldest first. Gold, training and screening answers are left out."""
    work = Assignment.objects.filter(trace=trace, purpose=AssignmentPurpose.WORK, submitted_revision__gt=0)
    assignments = list(work.select_related("rater__user").order_by("submitted_at", "pk"))
    revisions = {row.pk: row.submitted_revision for row in assignments}
    reports = {report.assignment_id: report for report in submitted_reports.load_revision_reports([*revisions.items()])}
    numbers = step_numbers.load_step_numbers(trace_ids=[trace.pk])
    raters = {
        row.pk: RaterOpinions(
            letter=letter,
            name=rater_names.get_display_name(row.rater, actor) if with_names else "",
            assignment=row,
            report=(report := reports.get(row.pk)),
            error=trace_steps.find_error_number(report, trace.pk, numbers),
        )
        for letter, row in zip(cycle(RATER_LETTERS), assignments, strict=False)
    }
    for assignment, answers in trace_questions.load_named_answers(actor.project, revisions).items():
        raters[assignment].answers = answers
    names = load_explanation_names(actor.project)
    judgments = Judgment.objects.filter(turn__assignment__in=revisions, option__position=0)
    for judgment in judgments.select_related("turn__step"):
        review = judgment.turn
        if review.revision == revisions[review.assignment_id]:
            raters[review.assignment_id].by_step[review.step.position] = build_step_opinion(judgment, review, names)
    return list(raters.values())


class ExplanationNames(NamedTuple):
    """The names of the kinds of errors by code, and of severities."""

    kinds: Mapping[str, str]
    severities: Mapping[int, str]


def load_explanation_names(project: Project) -> ExplanationNames:
    return ExplanationNames(rating_rules.kind_names(project), rating_rules.name_severities(project))


def build_step_opinion(judgment: Judgment | None, review: StepReview | None, names: ExplanationNames) -> StepOpinion:
    """Combine the rating of a step's own text with the comment and time of the step."""
    comments = [judgment.reason if judgment else "", review.comment if review else ""]
    ms = review.active_ms if review else None
    return StepOpinion(
        rating=judgment.rating if judgment else None,
        comment=" ".join(comment for comment in comments if comment),
        category=rating_rules.name_category(judgment.category, names.kinds) if judgment else "",
        error_link=judgment.get_error_link_display() if judgment else "",
        severity=names.severities[judgment.severity] if judgment and judgment.severity else "",
        seconds=None if ms is None else round(ms / 1000),
        is_flagged=bool(judgment and judgment.flagged),
        evidence=[quote["text"] for quote in (judgment.evidence if judgment else None) or ()],
        clauses=[cited["clause"] for cited in (judgment.citations if judgment else None) or ()],
        missing=review.missing if review else "",
    )


class MajorityVoter(Protocol):
    """A submission, with the number of the step that has its first error."""

    @property
    def assignment(self) -> Assignment: ...
    @property
    def report(self) -> submitted_reports.RevisionReport | None: ...
    @property
    def error(self) -> int | None: ...


def describe_majority(trace: Trace, voters: Iterable[MajorityVoter]) -> str:
    """Return one sentence, or "" without votes. Live traces have none: no two submissions have the same steps."""
    if trace.kind == TraceKind.LIVE:
        return ""
    leading = label_votes.find_leading_place([voter.error for voter in voters if _counts_as_vote(voter)])
    if leading is None:
        return ""
    values = {"n": leading.n, "total": leading.n_votes, "margin": number_format.format_share(leading.margin)}
    if leading.is_tied:
        return _("No majority: no result has more than %(n)d of %(total)d votes (margin %(margin)s).") % values
    if leading.place is None:
        return _("Majority: no error, %(n)d of %(total)d votes (margin %(margin)s).") % values
    values["step"] = leading.place
    return _("Majority: first error at step %(step)d, %(n)d of %(total)d votes (margin %(margin)s).") % values


def _counts_as_vote(voter: MajorityVoter) -> bool:
    """Gold answers, machines, raters who saw scores, and submissions that ended early or were set aside do not vote."""
    row = voter.assignment
    return (
        voter.report is not None
        and not voter.report.is_censored
        and row.purpose == AssignmentPurpose.WORK
        and not row.is_assisted
        and row.set_aside_id is None
        and row.rater.kind != RaterKind.MACHINE
    )
