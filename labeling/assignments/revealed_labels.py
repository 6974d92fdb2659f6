"""The labels of a machine that a rater sees: all of them before the answer, or each one after the rater's own.

In the arm `reveal`, the first answer to each step is stored when its label is shown. If the submission has other
ratings, the first answers become its first revision, and what is submitted its second.
"""

import datetime as dt
from typing import Any, NamedTuple

from labeling.assignments import corrections
from labeling.assignments.answer_sheet import AnswerSheet
from labeling.assignments.errors import AssignmentUnknown
from labeling.models import Assignment, Exposure, Judgment, RevealedLabel, Step, StepReview, Submission
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


class FirstAnswers(NamedTuple):
    """The first answers to steps whose label was shown, where the submission has others, and how they end."""

    changed: dict[int, int]  # by position
    finish_reason: str | None  # None if they neither name an error nor cover all steps


def find_first_answers(sheet: AnswerSheet, ending: FinishReason) -> FirstAnswers | None:
    """Return the answers that the rater changed before the first submission; None if no label was to be revealed."""
    facts = sheet.facts
    if not Exposure.objects.filter(pk=facts.assignment, arm=ExposureArm.REVEAL).exists():
        return None
    revealed = RevealedLabel.objects.filter(assignment=facts.assignment)
    first = dict(revealed.values_list("step__position", "first_rating"))
    end = protocols.find_end(facts.protocol, sheet.protocol_steps())
    final = {
        position: judgment.rating
        for (position, option), judgment in sheet.judgments.items()
        if option == 0 and judgment.rating is not None and (end is None or position <= end)
    }
    changed = {position: rating for position, rating in first.items() if final.get(position) != rating}
    if not changed or ending in (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM):
        return FirstAnswers(changed, ending.value)
    ratings = final | changed
    if _first_end(sheet, ratings) is not None:
        return FirstAnswers(changed, FinishReason.FOUND_ERROR.value)
    rateable = {position for position, step in sheet.steps.items() if step.is_rateable}
    return FirstAnswers(changed, FinishReason.SOLUTION.value if rateable <= ratings.keys() else None)


def _first_end(sheet: AnswerSheet, ratings: dict[int, int]) -> int | None:
    """Return the first negative step, if a submission ends there."""
    negative = [position for position, rating in ratings.items() if rating == protocols.NEGATIVE]
    return min(negative) if negative and protocols.RULES[sheet.facts.protocol].ends_at_first_negative else None


def keep_first_answers(
    *, sheet: AnswerSheet, submission: Submission, first: FirstAnswers, ending: FinishReason, now: dt.datetime
) -> Submission:
    """If answers were changed, make the first answers revision 1, which the caller has just submitted, and what was
    submitted revision 2. Return the submission that counts."""
    assignment = sheet.facts.assignment
    Exposure.objects.filter(pk=assignment).update(n_changed=len(first.changed))
    if not first.changed:
        return submission
    corrections.copy_revision(assignment_id=assignment, submitted=1, new=2)
    _restore_first_answers(sheet, first.changed)
    Assignment.objects.filter(pk=assignment).update(revision=2, submitted_revision=2)
    # The time is that of the first revision, so that no time is paid twice.
    return Submission.objects.create(
        project_id=submission.project_id,
        assignment_id=assignment,
        revision=2,
        submitted_at=now,
        finish_reason=ending.value,
        finish_note=submission.finish_note,
        is_quality_control=submission.is_quality_control,
        is_screening=submission.is_screening,
        protocol=submission.protocol,
    )


def _restore_first_answers(sheet: AnswerSheet, changed: dict[int, int]) -> None:
    assignment = sheet.facts.assignment
    own = {"turn__assignment": assignment, "turn__revision": 1, "option__position": 0}
    for position, rating in changed.items():
        step = sheet.steps[position]
        review, _is_new = StepReview.objects.get_or_create(
            assignment_id=assignment, revision=1, step_id=step.id, defaults={"shown": "0", "chosen": 0}
        )
        answer: dict[str, Any] = {"rating": rating, "category": "", "reason": "", "error_link": "", "severity": None}
        Judgment.objects.update_or_create(turn=review, option_id=step.options[0], defaults=answer)
        StepReview.objects.filter(pk=review.pk).update(chosen=None if rating == protocols.NEGATIVE else 0)
    rated = Judgment.objects.filter(**own).values_list("turn__step__position", "rating")
    end = _first_end(sheet, {position: rating for position, rating in rated if rating is not None})
    if end is not None:
        later = StepReview.objects.filter(assignment=assignment, revision=1, step__position__gt=end)
        Judgment.objects.filter(turn__in=later).delete()
        later.delete()
