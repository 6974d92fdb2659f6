"""The worker of a single-machine installation, which includes the beat."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Runs `work` until it would take messages: all imports, and the number of threads.
BEFORE_IT_WORKS = """
from supervisor import preload
preload.load_application()
preload.app.Worker = lambda **options: type("Told", (), {"start": print, "exitcode": options["concurrency"] < 2})()
raise SystemExit(preload.run_worker())
"""
# Ends the beat, as an error in the schedule would.
WITHOUT_A_BEAT = """
import signal
from supervisor import preload
preload.load_application()
signal.signal(signal.SIGTERM, lambda *_: (print("asked to stop"), exit(7)))
preload.QuietScheduler.tick = lambda scheduler: 1 / 0
with preload._running_beat():
    signal.pause()
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SECRET_KEY": "for the test", "STEPMARK_DATA": str(folder)}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.fault
def test_work_starts_without_any_setup(tmp_path: Path) -> None:
    done = run(BEFORE_IT_WORKS, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.fault
def test_work_ends_with_its_beat(tmp_path: Path) -> None:
    """A worker without a beat would silently stop sweeping jobs."""
    done = run(WITHOUT_A_BEAT, tmp_path)
    assert (done.returncode, done.stdout) == (7, "asked to stop\n"), done.stderr
