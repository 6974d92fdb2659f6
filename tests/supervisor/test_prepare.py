"""Preparing a platform: static files that others share, and the first work of the worker."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from config.celery import app
from labeling.quality import project_stats
from supervisor import prepare
from tests import factories
from tests.conventions.rule import ROOT

COLLECT = """
import sys, django
django.setup()
from django.conf import settings
settings.STATIC_ROOT = sys.argv[1]
from supervisor.prepare import collect_static_files
print(collect_static_files())
"""


@pytest.mark.fault
def test_static_files_are_collected_once(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "config.settings", "SECRET_KEY": "test"}
    command = [sys.executable, "-c", COLLECT, str(tmp_path / "build" / "static")]
    started = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [process.communicate(timeout=120)[0].strip() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert sorted(answers) == ["False", "False", "True"]
    assert list((tmp_path / "build" / "static" / "css").glob("base.*.css"))


@pytest.fixture
def loaded_tasks() -> Iterator[None]:
    """The tasks as the preloaded process has them. They run at once only for this test."""
    app.loader.import_default_modules()
    was_eager = app.conf.task_always_eager
    yield
    app.conf.task_always_eager = was_eager


@pytest.mark.django_db
@pytest.mark.usefixtures("loaded_tasks")
def test_due_work_is_done_before_the_worker_starts() -> None:
    project = factories.make_project()
    project_stats.mark_stats_stale(project_id=project.pk, now=timezone.now())
    prepare._do_due_work()
    assert project_stats.find_stale_projects(now=timezone.now()) == []
    stats = project_stats.load_project_stats(project_id=project.pk)
    assert stats is not None
    assert stats.computed_at is not None
