"""The Celery tasks of this package. Jobs are imported on first use, because scikit-learn takes a second to load."""

import datetime as dt

from celery import shared_task
from django.utils import timezone

from jobs import runner
from jobs.scheduler import register_work_check
from prm import canaries, file_evaluation, generations, scores

LEASE = dt.timedelta(minutes=3)  # a chunk may wait for an external scorer, or fit a model


@shared_task(name=generations.TRAIN)
def train(job_id: int) -> None:
    from prm import training_job

    runner.run_job(job_id, training_job.run_training_job, lease=LEASE)


@shared_task(name=generations.SCORE)
def score(job_id: int) -> None:
    runner.run_job(job_id, scores.run_scoring_job, lease=scores.lease_of_job(job_id))


@shared_task(name=generations.SELECT)
def select(job_id: int) -> None:
    from prm import batch_job

    runner.run_job(job_id, batch_job.run_batch_job, lease=LEASE)


@shared_task(name=file_evaluation.KIND)
def evaluate_file(job_id: int) -> None:
    runner.run_job(job_id, file_evaluation.run_file_evaluation_job, lease=LEASE)


@shared_task(name=canaries.KIND)
def score_canaries(job_id: int) -> None:
    runner.run_job(job_id, canaries.run_canaries_job, lease=LEASE)


@shared_task(name="prm.start_due")
def start_due() -> None:
    generations.start_due_generations(now=timezone.now())


_HAS_START_RULES = "EXISTS (SELECT FROM prm_looprules WHERE every_n_submissions IS NOT NULL)"
register_work_check("prm.start_due", _HAS_START_RULES)


@shared_task(name="prm.forget_scores")
def forget_scores() -> None:
    scores.delete_old_scores(now=timezone.now())
