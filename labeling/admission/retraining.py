"""Sends somebody who works already through what comes before the work, once more."""

import datetime as dt

from django.db import transaction

from accounts.models import User
from labeling import raters
from labeling.admission import moving, sets
from labeling.models import Rater
from labeling.models.queue import Arm
from labeling.models.rater import RaterStage


def train_again(*, rater_id: int, by: User, now: dt.datetime) -> None:
    """The guideline is read again before the next trace, and where the project has a screening set it is met anew, as
    the next attempt. Somebody who was paused goes on with that. What was rated stays."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        raters.resume(rater=rater, by=by, now=now)
        Rater.objects.filter(pk=rater_id).update(read_guideline=None)
        if sets.is_put_up(rater.project_id, Arm.SCREENING) and rater.stage != RaterStage.TRAINING:
            Rater.objects.filter(pk=rater_id).update(screening_attempt=rater.screening_attempt + 1)
            rater.screening_attempt += 1
            moving.move(rater=rater, to=RaterStage.SCREENING, now=now)
        moving.say("training.asked_again", rater, by, now, attempt=rater.screening_attempt)
