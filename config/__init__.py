"""Where the rooms are put together. Nobody imports this package but the servers."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
