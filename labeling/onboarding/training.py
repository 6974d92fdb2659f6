"""Training: after each trace its explained answer, which is looked at before the next one comes."""

import datetime as dt

from django.db import transaction

from accounts.models import User
from labeling import queue, raters
from labeling.models import Assignment, Rater, TrainingFeedback
from labeling.models.assignment import AssignmentPurpose
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterStage
from labeling.onboarding import gold_sets, stages


def give_feedback(*, assignment: Assignment, rater: Rater, now: dt.datetime) -> None:
    TrainingFeedback.objects.get_or_create(assignment=assignment, defaults={"given_at": now})
    if rater.stage == RaterStage.TRAINING:
        stages.set_stage(rater=rater, to=RaterStage.LESSON, now=now)


def acknowledge_feedback(*, assignment_id: int, rater_id: int, by: User, now: dt.datetime) -> None:
    """The rater has looked at the answer. Saying so twice, or looking again later, changes nothing."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        mine = TrainingFeedback.objects.filter(assignment__rater=rater, read_at=None)
        mine.filter(assignment=assignment_id).update(read_at=now)
        if rater.stage == RaterStage.LESSON and not mine.exists():
            stages.set_stage(rater=rater, to=RaterStage.TRAINING, now=now)
            finish_training(rater=rater, by=by, now=now)


def finish_training(*, rater: Rater, by: User | None, now: dt.datetime) -> None:
    if not gold_sets.is_set_complete(rater, AssignmentPurpose.TRAINING):
        return
    lessons = TrainingFeedback.objects.filter(assignment__rater=rater, assignment__attempt=rater.training_attempt)
    to = (
        RaterStage.SCREENING
        if gold_sets.is_set_served(rater.project_id, SamplingSource.SCREENING)
        else RaterStage.WORKING
    )
    stages.set_stage(rater=rater, to=to, now=now)
    told = {"n_traces": lessons.count(), "attempt": rater.training_attempt}
    stages.log_rater_event("training.finished", rater, by, now, **told)


# Sends somebody who works already through what comes before the work, once more.


def require_retraining(*, rater_id: int, by: User, now: dt.datetime) -> None:
    """The guideline is read again before the next trace; where the project has a training set it is gone through again,
    and after it the screening set is met anew, as the next attempt. With neither, work goes on behind the guideline.
    Somebody who was paused goes on with that. What was rated stays."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        raters.resume_rater(rater=rater, by=by, now=now)
        queue.release_held(rater_id=rater_id, now=now, reason="sent to train again", by=by)
        rater.read_guideline = None
        rater.screening_attempt += _has_begun(rater, AssignmentPurpose.SCREENING)
        rater.training_attempt += _has_begun(rater, AssignmentPurpose.TRAINING)
        rater.save(update_fields=["read_guideline", "screening_attempt", "training_attempt"])
        stages.set_stage(rater=rater, to=_first_stage(rater.project_id), now=now)
        told = {"training": rater.training_attempt, "screening": rater.screening_attempt, "stage": rater.stage}
        stages.log_rater_event("training.asked_again", rater, by, now, **told)


def _has_begun(rater: Rater, purpose: AssignmentPurpose) -> bool:
    return gold_sets.assignments_of_attempt(rater, purpose).exists()


def _first_stage(project_id: int) -> RaterStage:
    if gold_sets.is_set_served(project_id, SamplingSource.TRAINING):
        return RaterStage.TRAINING
    return RaterStage.SCREENING if gold_sets.is_set_served(project_id, SamplingSource.SCREENING) else RaterStage.WORKING
