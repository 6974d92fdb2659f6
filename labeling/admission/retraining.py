"""Sends somebody who works already through what comes before the work, once more."""

import datetime as dt

from django.db import transaction

from accounts.models import User
from labeling import queue, raters
from labeling.admission import moving, sets
from labeling.models import Rater
from labeling.models.assignment import Purpose
from labeling.models.queue import Arm
from labeling.models.rater import RaterStage


def train_again(*, rater_id: int, by: User, now: dt.datetime) -> None:
    """The guideline is read again before the next trace; where the project has a training set it is gone through again,
    and after it the screening set is met anew, as the next attempt. With neither, work goes on behind the guideline.
    Somebody who was paused goes on with that. What was rated stays."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        raters.resume(rater=rater, by=by, now=now)
        queue.release_held(rater_id=rater_id, now=now, reason="sent to train again", by=by)
        rater.read_guideline = None
        rater.screening_attempt += _was_begun(rater, Purpose.SCREENING)
        rater.training_attempt += _was_begun(rater, Purpose.TRAINING)
        rater.save(update_fields=["read_guideline", "screening_attempt", "training_attempt"])
        moving.move(rater=rater, to=_first_stage(rater.project_id), now=now)
        told = {"training": rater.training_attempt, "screening": rater.screening_attempt, "stage": rater.stage}
        moving.say("training.asked_again", rater, by, now, **told)


def _was_begun(rater: Rater, purpose: Purpose) -> bool:
    return sets.of_attempt(rater, purpose).exists()


def _first_stage(project_id: int) -> RaterStage:
    if sets.is_put_up(project_id, Arm.TRAINING):
        return RaterStage.TRAINING
    return RaterStage.SCREENING if sets.is_put_up(project_id, Arm.SCREENING) else RaterStage.WORKING
