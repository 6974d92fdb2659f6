"""One submission as its rater saw it, with what others said of the same steps. Reads alone, in a fixed number of
queries."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import majority, rater_names
from dashboard.adjudication import page
from dashboard.adjudication.page import RaterOpinions, StepOpinion
from dashboard.trace import page as trace_page
from dashboard.trace.page import StepWithTexts
from labeling.models import Assignment, CorrectionRequest, Judgment, StepReview, Submission
from labeling.models.assignment import FinishReason
from people.models import Membership


@dataclass(frozen=True)
class SubmissionStep:
    """A step: what this rater said of each of its texts, and what the others said of the step."""

    rung: StepWithTexts
    said: StepOpinion | None
    alternatives: Sequence[tuple[trace_page.StepText, int | None]]
    others: Sequence[tuple[RaterOpinions, StepOpinion]]


@dataclass(frozen=True)
class SubmissionPage:
    assignment: Assignment
    name: str
    submission: Submission
    revisions: Sequence[int]
    lines: Sequence[SubmissionStep]
    others: Sequence[RaterOpinions]
    request: CorrectionRequest | None
    majority: str  # of all readings, this one with them

    @property
    def ended_with(self) -> str:
        """Files may bring other words than ours."""
        reason = self.submission.finish_reason or "–"
        return str(FinishReason(reason).label) if reason in FinishReason.values else reason


def load_submission(assignment: Assignment, actor: Membership, revision: int | None) -> SubmissionPage | None:
    """The revision that counts, or the one that was asked for; None where there is none."""
    submissions = {row.revision: row for row in Submission.objects.filter(assignment=assignment).order_by("revision")}
    chosen = submissions.get(revision or assignment.submitted_revision)
    if chosen is None:
        return None
    every = page.load_rater_opinions(assignment.trace, actor)
    others = [voice for voice in every if voice.assignment.pk != assignment.pk]
    return SubmissionPage(
        assignment=assignment,
        name=rater_names.get_display_name(assignment.rater, actor),
        submission=chosen,
        revisions=list(submissions),
        lines=_load_steps(assignment, chosen.revision, others),
        others=others,
        request=CorrectionRequest.objects.filter(assignment=assignment).order_by("-pk").first(),
        majority=majority.describe_majority(assignment.trace, every),
    )


def _load_steps(assignment: Assignment, revision: int, others: Sequence[RaterOpinions]) -> list[SubmissionStep]:
    turns = {
        turn.step.position: turn
        for turn in StepReview.objects.filter(assignment=assignment, revision=revision).select_related("step")
    }
    judged = {
        (row.turn.step.position, row.option.position): row
        for row in Judgment.objects.filter(turn__in=turns.values()).select_related("turn__step", "option")
    }
    return [
        _build_step(rung, turns.get(rung.position), judged, others) for rung in trace_page.load_steps(assignment.trace)
    ]


def _build_step(
    rung: StepWithTexts,
    turn: StepReview | None,
    judged: dict[tuple[int, int], Judgment],
    others: Sequence[RaterOpinions],
) -> SubmissionStep:
    own = judged.get((rung.position, 0))
    rest = [(text, judged.get((rung.position, text.option.position))) for text in rung.texts[1:]]
    return SubmissionStep(
        rung=rung,
        said=_build_opinion(own, turn),
        alternatives=[(text, found.rating if found else None) for text, found in rest],
        others=[(voice, said) for voice in others if (said := voice.said.get(rung.position)) is not None],
    )


def _build_opinion(own: Judgment | None, turn: StepReview | None) -> StepOpinion | None:
    if own is None and (turn is None or not turn.comment):
        return None
    words = [own.reason if own else "", turn.comment if turn else ""]
    ms = turn.active_ms if turn else None
    return StepOpinion(
        rating=own.rating if own else None,
        comment=" ".join(each for each in words if each),
        category=own.category if own else "",
        seconds=None if ms is None else round(ms / 1000),
        is_flagged=bool(own and own.flagged),
    )
