"""The Celery application: `celery -A config.celery worker`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
app = Celery("stepmark")
app.set_default()  # for every thread: the web server's threads publish too
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
