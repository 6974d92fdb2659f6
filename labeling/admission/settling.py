"""Decides where a rater goes on: when a trace of a set is submitted, and when a set has nothing left."""

import datetime as dt

from django.db import transaction

from accounts.models import User
from labeling import queue
from labeling.admission import screening, training
from labeling.models import Assignment, Rater
from labeling.models.assignment import Purpose
from labeling.models.rater import RaterStage
from labeling.queue import Claim


def submitted(*, assignment_id: int, by: User | None, now: dt.datetime) -> None:
    """A trace of the way in was submitted and scored; inside the transaction of its submit."""
    assignment = Assignment.objects.get(pk=assignment_id)
    rater = _locked(assignment.rater_id)
    if assignment.purpose == Purpose.TRAINING:
        training.give_lesson(assignment=assignment, rater=rater, now=now)
    elif rater.stage == RaterStage.SCREENING:
        screening.decide_if_complete(rater=rater, by=by, now=now)


def claim(*, rater_id: int, by: User | None, now: dt.datetime, opened: bool = False) -> Claim:
    """The next trace, from wherever the rater stands on the way. Raises a QueueRefusal."""
    try:
        return queue.claim(rater_id=rater_id, now=now, opened=opened)
    except queue.NothingLeft:
        if not settle(rater_id=rater_id, by=by, now=now):
            raise
    return queue.claim(rater_id=rater_id, now=now, opened=opened)


def settle(*, rater_id: int, by: User | None, now: dt.datetime) -> bool:
    """Somebody stands at a set in which nothing is left for them, since it was made smaller or taken away meanwhile:
    they go on. Says whether they did."""
    with transaction.atomic():
        rater = _locked(rater_id)
        before = rater.stage
        if before == RaterStage.TRAINING:
            training.go_on_if_complete(rater=rater, by=by, now=now)
        elif before == RaterStage.SCREENING:
            screening.decide_if_complete(rater=rater, by=by, now=now)
        return rater.stage != before


def _locked(rater_id: int) -> Rater:
    """Two submits of one rater decide one after the other."""
    return Rater.objects.select_for_update(no_key=True, of=("self",)).select_related("project").get(pk=rater_id)
