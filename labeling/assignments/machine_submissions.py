"""Store the labels of machines that run here as submissions of a machine rater.

They are not scheduled and take no slot. Statistics of people leave them out by the kind of their rater; only the
consensus that includes machines, which is stored apart, counts them.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from labeling.models import Assignment, Judgment, Option, Rater, Step, StepReview, Submission
from labeling.models.assignment import AssignmentOrigin, AssignmentState, FinishReason, Population
from labeling.quality import settlements


@dataclass(frozen=True)
class MachineRating:
    """A machine's rating of one step. `value` is its estimate that no step so far is wrong, from `rollouts` samples."""

    position: int
    rating: int
    value: float | None = None
    rollouts: int | None = None
    successes: int | None = None
    reason: str = ""
    category: str = ""


@dataclass(frozen=True)
class MachineSubmission:
    trace_id: int
    ratings: Sequence[MachineRating]
    saw_reference_answer: bool = False


def save_machine_submissions(
    *, rater: Rater, submitted: Sequence[MachineSubmission], now: dt.datetime
) -> dict[int, Submission]:
    """Create a submission for each trace, and return them by trace. The rater has no other one for these traces."""
    trace_ids = [each.trace_id for each in submitted]
    settlements.lock_traces(trace_ids=trace_ids)
    guideline = rater.project.guideline
    assignments = Assignment.objects.bulk_create(
        Assignment(
            project=rater.project,
            rater=rater,
            trace_id=each.trace_id,
            origin=AssignmentOrigin.HERE,
            population=Population.EXTRA,
            state=AssignmentState.SUBMITTED,
            opened_at=now,
            submitted_at=now,
            finish_reason=_finish_reason(each),
            guideline=guideline,
            saw_reference_answer=each.saw_reference_answer,
            saw_final_verdict=False,
            submitted_revision=1,
        )
        for each in submitted
    )
    submissions = Submission.objects.bulk_create(
        Submission(
            project=rater.project, assignment=assignment, submitted_at=now, finish_reason=assignment.finish_reason
        )
        for assignment in assignments
    )
    _save_ratings(assignments, submitted)
    settlements.mark_due(trace_ids=trace_ids, now=now)
    return dict(zip(trace_ids, submissions, strict=True))


def _finish_reason(submitted: MachineSubmission) -> FinishReason:
    has_error = any(each.rating == -1 for each in submitted.ratings)
    return FinishReason.FOUND_ERROR if has_error else FinishReason.SOLUTION


def _save_ratings(assignments: Sequence[Assignment], submitted: Sequence[MachineSubmission]) -> None:
    trace_ids = [each.trace_id for each in submitted]
    rows = Step.objects.filter(trace__in=trace_ids).values_list("trace_id", "position", "pk")
    steps = {(trace, position): pk for trace, position, pk in rows}
    options = dict(Option.objects.filter(step__trace__in=trace_ids, position=0).values_list("step_id", "pk"))
    rated = [
        (assignment, rating, steps[each.trace_id, rating.position])
        for assignment, each in zip(assignments, submitted, strict=True)
        for rating in each.ratings
    ]
    reviews = StepReview.objects.bulk_create(
        StepReview(assignment=assignment, step_id=step, shown="0", chosen=None if rating.rating == -1 else 0)
        for assignment, rating, step in rated
    )
    Judgment.objects.bulk_create(
        Judgment(
            turn=review,
            option_id=options[step],
            rating=rating.rating,
            value=rating.value,
            rollouts=rating.rollouts,
            successes=rating.successes,
            reason=rating.reason,
            category=rating.category,
        )
        for review, (_, rating, step) in zip(reviews, rated, strict=True)
    )
