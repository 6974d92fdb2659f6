"""The page of one submission, beside the other submissions of the same trace. A fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import majority, rater_names, trace_steps
from dashboard.rater_opinions import RaterOpinions, StepOpinion, build_step_opinion, load_rater_opinions
from dashboard.trace_steps import StepText, StepWithTexts
from labeling.models import Assignment, CorrectionRequest, Judgment, StepReview, Submission
from labeling.models.assignment import FinishReason
from people.models import Membership


@dataclass(frozen=True)
class SubmissionStep:
    """A step, with the ratings of this submission and of the others."""

    step: StepWithTexts
    opinion: StepOpinion
    alternatives: Sequence[tuple[StepText, int | None]]
    others: Sequence[tuple[RaterOpinions, StepOpinion]]


@dataclass(frozen=True)
class SubmissionPage:
    assignment: Assignment
    name: str
    submission: Submission
    revisions: Sequence[int]
    steps: Sequence[SubmissionStep]
    others: Sequence[RaterOpinions]
    request: CorrectionRequest | None
    majority: str  # over all submissions, this one included

    @property
    def finish_reason(self) -> str:
        """Imported files may use reasons that are not in our list."""
        reason = self.submission.finish_reason or "–"
        return str(FinishReason(reason).label) if reason in FinishReason.values else reason


def load_submission(assignment: Assignment, actor: Membership, revision: int | None) -> SubmissionPage | None:
    """Load the given revision, or the one that counts. Return None if it does not exist."""
    submissions = {row.revision: row for row in Submission.objects.filter(assignment=assignment).order_by("revision")}
    submission = submissions.get(revision or assignment.submitted_revision)
    if submission is None:
        return None
    everyone = load_rater_opinions(assignment.trace, actor)
    others = [rater for rater in everyone if rater.assignment.pk != assignment.pk]
    return SubmissionPage(
        assignment=assignment,
        name=rater_names.get_display_name(assignment.rater, actor),
        submission=submission,
        revisions=list(submissions),
        steps=_load_steps(assignment, submission.revision, others),
        others=others,
        request=CorrectionRequest.objects.filter(assignment=assignment).order_by("-pk").first(),
        majority=majority.describe_majority(assignment.trace, everyone),
    )


def _load_steps(assignment: Assignment, revision: int, others: Sequence[RaterOpinions]) -> list[SubmissionStep]:
    rows = StepReview.objects.filter(assignment=assignment, revision=revision).select_related("step")
    reviews = {review.step.position: review for review in rows}
    judgments = {
        (row.turn.step.position, row.option.position): row
        for row in Judgment.objects.filter(turn__in=reviews.values()).select_related("turn__step", "option")
    }
    return [
        SubmissionStep(
            step=step,
            opinion=build_step_opinion(judgments.get((step.position, 0)), reviews.get(step.position)),
            alternatives=[
                (text, judgment.rating if judgment else None)
                for text in step.texts[1:]
                for judgment in [judgments.get((step.position, text.option.position))]
            ],
            others=[(rater, rater.by_step[step.position]) for rater in others if step.position in rater.by_step],
        )
        for step in trace_steps.load_steps(assignment.trace)
    ]
