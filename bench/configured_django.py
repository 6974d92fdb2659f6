"""Configure Django without a database when imported, for benchmarks of code that reads settings."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("SECRET_KEY", "only for the benchmark")
django.setup()
