"""One submission as its rater saw it, with what others said of the same steps. Reads alone, in a fixed number of
queries."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import deciding, majority, names, reading
from dashboard.deciding import Said, Voice
from dashboard.reading import Rung
from labeling.models import Assignment, CorrectionRequest, Judgment, Submission, Turn
from labeling.models.assignment import FinishReason
from people.models import Membership


@dataclass(frozen=True)
class Line:
    """A step: what this rater said of each of its texts, and what the others said of the step."""

    rung: Rung
    said: Said | None
    alternatives: Sequence[tuple[reading.Text, int | None]]
    others: Sequence[tuple[Voice, Said]]


@dataclass(frozen=True)
class Review:
    assignment: Assignment
    name: str
    submission: Submission
    revisions: Sequence[int]
    lines: Sequence[Line]
    others: Sequence[Voice]
    request: CorrectionRequest | None
    majority: str  # of all readings, this one with them

    @property
    def ended_with(self) -> str:
        """Files may bring other words than ours."""
        reason = self.submission.finish_reason or "–"
        return str(FinishReason(reason).label) if reason in FinishReason.values else reason


def of(assignment: Assignment, actor: Membership, revision: int | None) -> Review | None:
    """The revision that counts, or the one that was asked for; None where there is none."""
    submissions = {row.revision: row for row in Submission.objects.filter(assignment=assignment).order_by("revision")}
    chosen = submissions.get(revision or assignment.submitted_revision)
    if chosen is None:
        return None
    every = deciding.voices_of(assignment.trace, actor)
    others = [voice for voice in every if voice.assignment.pk != assignment.pk]
    return Review(
        assignment=assignment,
        name=names.of(assignment.rater, actor),
        submission=chosen,
        revisions=list(submissions),
        lines=_lines(assignment, chosen.revision, others),
        others=others,
        request=CorrectionRequest.objects.filter(assignment=assignment).order_by("-pk").first(),
        majority=majority.told(assignment.trace, every),
    )


def _lines(assignment: Assignment, revision: int, others: Sequence[Voice]) -> list[Line]:
    turns = {
        turn.step.position: turn
        for turn in Turn.objects.filter(assignment=assignment, revision=revision).select_related("step")
    }
    judged = {
        (row.turn.step.position, row.option.position): row
        for row in Judgment.objects.filter(turn__in=turns.values()).select_related("turn__step", "option")
    }
    return [_line(rung, turns.get(rung.position), judged, others) for rung in reading.rungs(assignment.trace)]


def _line(rung: Rung, turn: Turn | None, judged: dict[tuple[int, int], Judgment], others: Sequence[Voice]) -> Line:
    own = judged.get((rung.position, 0))
    rest = [(text, judged.get((rung.position, text.option.position))) for text in rung.texts[1:]]
    return Line(
        rung=rung,
        said=_said(own, turn),
        alternatives=[(text, found.rating if found else None) for text, found in rest],
        others=[(voice, said) for voice in others if (said := voice.said.get(rung.position)) is not None],
    )


def _said(own: Judgment | None, turn: Turn | None) -> Said | None:
    if own is None and (turn is None or not turn.comment):
        return None
    words = [own.reason if own else "", turn.comment if turn else ""]
    ms = turn.active_ms if turn else None
    return Said(
        rating=own.rating if own else None,
        comment=" ".join(each for each in words if each),
        category=own.category if own else "",
        seconds=None if ms is None else round(ms / 1000),
        is_flagged=bool(own and own.flagged),
    )
