"""Celery tasks of `events`."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from events import origins


@shared_task(name="events.delete_old_origins")
def delete_old_origins() -> None:
    origins.delete_old_origins(now=timezone.now(), days=settings.ORIGIN_DAYS)
