"""Training: after each trace the rater reads feedback, before the next trace. Leads can require retraining."""

import datetime as dt

from django.db import transaction

from accounts.models import User
from labeling import queue, raters
from labeling.models import Assignment, Rater, TrainingFeedback
from labeling.models.assignment import AssignmentPurpose
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterStage
from labeling.onboarding import gold_sets


def give_feedback(*, assignment: Assignment, rater: Rater, now: dt.datetime) -> None:
    TrainingFeedback.objects.get_or_create(assignment=assignment, defaults={"given_at": now})
    if rater.stage == RaterStage.TRAINING:
        raters.set_stage(rater=rater, to=RaterStage.LESSON, now=now)


def acknowledge_feedback(*, assignment_id: int, rater_id: int, by: User, now: dt.datetime) -> None:
    """Record that the rater has read the feedback. Repeating it changes nothing."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        unread = TrainingFeedback.objects.filter(assignment__rater=rater, read_at=None)
        unread.filter(assignment=assignment_id).update(read_at=now)
        if rater.stage == RaterStage.LESSON and not unread.exists():
            raters.set_stage(rater=rater, to=RaterStage.TRAINING, now=now)
            finish_training(rater=rater, by=by, now=now)


def finish_training(*, rater: Rater, by: User | None, now: dt.datetime) -> None:
    if not gold_sets.is_set_complete(rater, AssignmentPurpose.TRAINING):
        return
    feedback = TrainingFeedback.objects.filter(assignment__rater=rater, assignment__attempt=rater.training_attempt)
    raters.set_stage(rater=rater, to=_stage_after_training(rater.project_id), now=now)
    detail = {"n_traces": feedback.count(), "attempt": rater.training_attempt}
    raters.log_rater_event("training.finished", rater, by, now, **detail)


def require_retraining(*, rater_id: int, by: User, now: dt.datetime) -> None:
    """Send a rater through onboarding again: the guideline, then the training and screening sets that the project has,
    as new attempts. Ends a pause. Earlier labels stay."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        raters.resume_rater(rater=rater, by=by, now=now)
        queue.release_held(rater_id=rater_id, now=now, reason="retraining required", by=by)
        rater.read_guideline = None
        rater.screening_attempt += _has_begun(rater, AssignmentPurpose.SCREENING)
        rater.training_attempt += _has_begun(rater, AssignmentPurpose.TRAINING)
        rater.save(update_fields=["read_guideline", "screening_attempt", "training_attempt"])
        raters.set_stage(rater=rater, to=_first_stage(rater.project_id), now=now)
        detail = {"training": rater.training_attempt, "screening": rater.screening_attempt, "stage": rater.stage}
        raters.log_rater_event("training.asked_again", rater, by, now, **detail)


def _has_begun(rater: Rater, purpose: AssignmentPurpose) -> bool:
    return gold_sets.assignments_of_attempt(rater, purpose).exists()


def _first_stage(project_id: int) -> RaterStage:
    if gold_sets.is_set_served(project_id, SamplingSource.TRAINING):
        return RaterStage.TRAINING
    return _stage_after_training(project_id)


def _stage_after_training(project_id: int) -> RaterStage:
    return RaterStage.SCREENING if gold_sets.is_set_served(project_id, SamplingSource.SCREENING) else RaterStage.WORKING
