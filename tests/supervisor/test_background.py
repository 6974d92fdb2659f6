"""The worker and the beat of one machine come up in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# As far as `work` goes before it takes messages: everything is imported, and the number of threads is known.
BEFORE_IT_WORKS = """
from supervisor import background
background.app.Worker = lambda **options: type("Told", (), {"start": print, "exitcode": options["concurrency"] < 2})()
raise SystemExit(background.work())
"""


def test_work_comes_up_without_anything_having_been_set_up(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SECRET_KEY": "for the test", "STEPMARK_DATA": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", BEFORE_IT_WORKS], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
