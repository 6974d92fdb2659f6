"""Settings, URLs and server entry points. Only the servers import this package."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
