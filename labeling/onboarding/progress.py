"""Move a rater to the next onboarding stage: after a submission, and when a set has nothing left."""

import datetime as dt

from django.db import transaction

from accounts.models import User
from labeling import queue
from labeling.models import Assignment, Rater
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterStage
from labeling.onboarding import screening, training
from labeling.queue import Claim


def handle_submission(*, assignment_id: int, by: User | None, now: dt.datetime) -> None:
    """Handle the submission of a scored training or screening trace, inside its transaction."""
    assignment = Assignment.objects.get(pk=assignment_id)
    rater = _lock_rater(assignment.rater_id)
    if assignment.purpose == AssignmentPurpose.TRAINING:
        training.give_feedback(assignment=assignment, rater=rater, now=now)
    elif rater.stage == RaterStage.SCREENING:
        screening.decide_screening(rater=rater, by=by, now=now)


def claim_trace(*, rater_id: int, by: User | None, now: dt.datetime, opened: bool = False) -> Claim:
    """Return the next trace at the rater's stage, and move on if the stage has none left. Raises a QueueRefusal."""
    try:
        return queue.claim_trace(rater_id=rater_id, now=now, opened=opened)
    except queue.NothingLeft:
        if not advance_rater(rater_id=rater_id, by=by, now=now):
            raise
    return queue.claim_trace(rater_id=rater_id, now=now, opened=opened)


def advance_rater(*, rater_id: int, by: User | None, now: dt.datetime) -> bool:
    """Move on a rater whose set has become smaller or was removed. Return whether the stage changed."""
    with transaction.atomic():
        rater = _lock_rater(rater_id)
        before = rater.stage
        if before == RaterStage.TRAINING:
            training.finish_training(rater=rater, by=by, now=now)
        elif before == RaterStage.SCREENING:
            screening.decide_screening(rater=rater, by=by, now=now)
        return rater.stage != before


def _lock_rater(rater_id: int) -> Rater:
    """Lock the rater, so that concurrent submits are handled one after the other."""
    return Rater.objects.select_for_update(no_key=True, of=("self",)).select_related("project").get(pk=rater_id)
