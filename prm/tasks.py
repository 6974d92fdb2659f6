"""The Celery tasks of this room. What does the work is imported when there is some: scikit-learn takes a second."""

import datetime as dt

from celery import shared_task
from django.utils import timezone

from jobs import runner
from prm import generations, scores

LEASE = dt.timedelta(minutes=3)  # a chunk may wait for a scorer elsewhere, or fit a model


@shared_task(name=generations.TRAIN)
def train(job_id: int) -> None:
    from prm import stages

    runner.run(job_id, stages.chunks, lease=LEASE)


@shared_task(name=generations.SCORE)
def score(job_id: int) -> None:
    from prm import scoring

    runner.run(job_id, scoring.chunks, lease=scoring.lease(job_id))


@shared_task(name=generations.SELECT)
def select(job_id: int) -> None:
    from prm import choosing

    runner.run(job_id, choosing.chunks, lease=LEASE)


@shared_task(name="prm.start_due")
def start_due() -> None:
    generations.start_due(now=timezone.now())


@shared_task(name="prm.forget_scores")
def forget_scores() -> None:
    scores.forget_old(now=timezone.now())
