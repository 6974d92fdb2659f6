"""Configure Django without a database when imported, for benchmarks of code that reads settings."""

import os

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("SECRET_KEY", "only for the benchmark")
if not apps.ready:  # in tests, it is
    django.setup()
