"""Celery tasks of `accounts`."""

from celery import shared_task
from django.utils import timezone

from accounts import sessions


@shared_task(name="accounts.forget_ended_sessions")
def delete_expired_sessions() -> None:
    sessions.delete_expired_sessions(now=timezone.now())
