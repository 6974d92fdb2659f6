"""Platforms of one checkout that start at the same moment share its static files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
