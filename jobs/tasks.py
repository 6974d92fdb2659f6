"""The Celery tasks of this room."""

from celery import shared_task
from django.utils import timezone

from jobs import work


@shared_task(name="jobs.sweep")
def sweep() -> None:
    work.sweep(now=timezone.now())
