"""The labels of a machine that a rater sees: all of them before the answer, or each one after the rater's own.

In the arm `reveal`, the first answer to each step is stored when its label is shown. If the submission has other
ratings, the first answers become its first revision, and what is submitted its second.
"""

import datetime as dt
from typing import Any, NamedTuple

from labeling.assignments import corrections
from labeling.assignments.answer_sheet import AnswerSheet
from labeling.assignments.errors import AssignmentUnknown
from labeling.models import Assignment, Exposure, Judgment, Option, RevealedLabel, Step, StepReview, Submission
from labeling.models.assignment import OPEN_STATES, FinishReason
from labeling.models.suggestion import ExposureArm
from labeling.projects import protocols


class Suggestions(NamedTuple):
    """What the work page shows: labels by step position. With `reveals`, the page asks for each further one."""

    reveals: bool
    labels: dict[int, int]


def load_suggestions(assignment_id: int) -> Suggestions | None:
    """Return the labels that the rater may see now; None if the rater labels this trace blind."""
    exposure = _find_exposure(assignment_id)
    if exposure is None:
        return None
    if exposure.arm == ExposureArm.SUGGEST:
        return Suggestions(reveals=False, labels=_load_labels(exposure))
    revealed = RevealedLabel.objects.filter(assignment=assignment_id).values_list("step__position", "shown_rating")
    return Suggestions(reveals=True, labels=dict(revealed))


def reveal_label(*, assignment_id: int, rater_id: int, step: int, rating: int, now: dt.datetime) -> int | None:
    """Store the rater's first answer to a step, and return the machine's label of it; None if there is none to show.

    Raises AssignmentUnknown if the rater does not see labels of this trace after answering."""
    exposure = _find_exposure(assignment_id)
    if exposure is None or exposure.arm != ExposureArm.REVEAL or exposure.assignment.rater_id != rater_id:
        raise AssignmentUnknown
    seen = RevealedLabel.objects.filter(assignment=assignment_id, step__position=step)
    if (shown := seen.values_list("shown_rating", flat=True).first()) is not None:
        return shown
    is_open = exposure.assignment.state in OPEN_STATES
    label = _load_labels(exposure).get(step) if is_open and exposure.plan.ended_at is None else None
    if label is None:
        return None
    own_step = Step.objects.get(trace=exposure.assignment.trace_id, position=step)
    answer, _is_new = RevealedLabel.objects.get_or_create(
        assignment_id=assignment_id,
        step=own_step,
        defaults={"first_rating": rating, "shown_rating": label, "revealed_at": now},
    )
    return answer.shown_rating


def _find_exposure(assignment_id: int) -> Exposure | None:
    exposed = Exposure.objects.select_related("assignment", "plan").filter(assignment__is_assisted=True)
    return exposed.filter(pk=assignment_id).first()


def _load_labels(exposure: Exposure) -> dict[int, int]:
    rated = Judgment.objects.filter(
        turn__assignment=exposure.shown_id,
        turn__revision=exposure.shown_revision,
        turn__step__is_rateable=True,
        option__position=0,
        rating__isnull=False,
    )
    rows = rated.values_list("turn__step__position", "rating")
    return {position: rating for position, rating in rows if rating is not None}


def keep_first_answers(sheet: AnswerSheet, submission: Submission) -> Submission:
    """If the rater changed answers after their labels were shown, make the first answers revision 1 and what was
    submitted revision 2. Return the submission that counts. The caller has just stored the submission as revision 1."""
    assignment = sheet.facts.assignment
    exposure = Exposure.objects.filter(pk=assignment, arm=ExposureArm.REVEAL)
    if not exposure.exists():
        return submission
    first = dict(RevealedLabel.objects.filter(assignment=assignment).values_list("step__position", "first_rating"))
    final = dict(
        Judgment.objects.filter(turn__assignment=assignment, turn__revision=1, option__position=0).values_list(
            "turn__step__position", "rating"
        )
    )
    changed = {position: rating for position, rating in first.items() if final.get(position) != rating}
    exposure.update(n_changed=len(changed))
    if not changed:
        return submission
    corrections.copy_revision(assignment_id=assignment, submitted=1, new=2)
    _restore_first_answers(sheet, changed)
    # The time is that of the first revision, so that no time is paid twice.
    second = Submission.objects.create(
        project_id=submission.project_id,
        assignment_id=assignment,
        revision=2,
        submitted_at=submission.submitted_at,
        finish_reason=submission.finish_reason,
        finish_note=submission.finish_note,
        is_quality_control=submission.is_quality_control,
        is_screening=submission.is_screening,
        protocol=submission.protocol,
    )
    reason = _first_finish_reason(sheet, submission, {**final, **changed})
    Submission.objects.filter(pk=submission.pk).update(finish_reason=reason)
    Assignment.objects.filter(pk=assignment).update(revision=2, submitted_revision=2)
    return second


def _restore_first_answers(sheet: AnswerSheet, changed: dict[int, int]) -> None:
    assignment = sheet.facts.assignment
    for position, rating in changed.items():
        step = sheet.steps[position]
        review, _is_new = StepReview.objects.get_or_create(
            assignment_id=assignment, revision=1, step_id=step.id, defaults={"shown": "0", "chosen": 0}
        )
        answer: dict[str, Any] = {"rating": rating, "category": "", "reason": "", "error_link": "", "severity": None}
        option = Option.objects.get(pk=step.options[0])
        Judgment.objects.update_or_create(turn=review, option=option, defaults=answer)
        if rating == protocols.NEGATIVE:
            StepReview.objects.filter(pk=review.pk).update(chosen=None)


def _first_finish_reason(sheet: AnswerSheet, submission: Submission, ratings: dict[int, int | None]) -> str | None:
    """Return how the first answers end: None if they neither name an error nor cover all steps."""
    if submission.finish_reason in (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM):
        return submission.finish_reason
    negative = [position for position, rating in ratings.items() if rating == protocols.NEGATIVE]
    if negative and protocols.RULES[sheet.facts.protocol].ends_at_first_negative:
        later = StepReview.objects.filter(
            assignment=sheet.facts.assignment, revision=1, step__position__gt=min(negative)
        )
        Judgment.objects.filter(turn__in=later).delete()
        later.delete()
        return FinishReason.FOUND_ERROR
    rateable = {position for position, step in sheet.steps.items() if step.is_rateable}
    return FinishReason.SOLUTION if rateable <= ratings.keys() else None
