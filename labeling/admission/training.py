"""Training: after each trace its explained answer, which is looked at before the next one comes."""

import datetime as dt

from django.db import transaction

from accounts.models import User
from labeling.admission import moving, sets
from labeling.models import Assignment, Lesson, Rater
from labeling.models.assignment import Purpose
from labeling.models.queue import Arm
from labeling.models.rater import RaterStage


def give_lesson(*, assignment: Assignment, rater: Rater, now: dt.datetime) -> None:
    Lesson.objects.get_or_create(assignment=assignment, defaults={"given_at": now})
    if rater.stage == RaterStage.TRAINING:
        moving.move(rater=rater, to=RaterStage.LESSON, now=now)


def read_lesson(*, assignment_id: int, rater_id: int, by: User, now: dt.datetime) -> None:
    """The rater has looked at the answer. Saying so twice, or looking again later, changes nothing."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        mine = Lesson.objects.filter(assignment__rater=rater, read_at=None)
        mine.filter(assignment=assignment_id).update(read_at=now)
        if rater.stage == RaterStage.LESSON and not mine.exists():
            moving.move(rater=rater, to=RaterStage.TRAINING, now=now)
            go_on_if_complete(rater=rater, by=by, now=now)


def go_on_if_complete(*, rater: Rater, by: User | None, now: dt.datetime) -> None:
    if not sets.is_complete(rater, Purpose.TRAINING):
        return
    lessons = Lesson.objects.filter(assignment__rater=rater, assignment__attempt=rater.training_attempt)
    to = RaterStage.SCREENING if sets.is_put_up(rater.project_id, Arm.SCREENING) else RaterStage.WORKING
    moving.move(rater=rater, to=to, now=now)
    told = {"n_traces": lessons.count(), "attempt": rater.training_attempt}
    moving.say("training.finished", rater, by, now, **told)
