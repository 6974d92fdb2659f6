"""`./run` finds a suitable Python, or prints one line of error."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.supervisor.platform_process import BASE


def test_run_says_in_one_line_that_python_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.18" && exit 0\nexit 1\n')
    old.chmod(0o755)
    ended = subprocess.run([BASE / "run"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert "needs Python 3.11 or newer, and found Python 3.9.18" in ended.stderr


def test_run_says_in_one_line_that_there_is_no_python(tmp_path: Path) -> None:
    ended = subprocess.run([BASE / "run"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "found no python3" in ended.stderr


@pytest.mark.fault
def test_run_describes_its_options() -> None:
    ended = subprocess.run([BASE / "run", "--help"], env=dict(os.environ), capture_output=True, text=True, check=True)
    for option in ("--port", "--data", "--no-demo"):
        assert option in ended.stdout
