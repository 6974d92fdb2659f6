"""The periodic task that sweeps jobs."""

from celery import shared_task
from django.utils import timezone

from jobs import control


@shared_task(name="jobs.sweep")
def sweep() -> None:
    control.sweep_jobs(now=timezone.now())
