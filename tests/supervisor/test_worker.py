"""The worker of one machine, which has the beat in it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# As far as `work` goes before it takes messages: everything is imported, and the number of threads is known.
BEFORE_IT_WORKS = """
from supervisor import preload, worker
preload.load_application()
worker.app.Worker = lambda **options: type("Told", (), {"start": print, "exitcode": options["concurrency"] < 2})()
raise SystemExit(worker.run_worker())
"""
# Ends its beat as an error of the schedule would.
WITHOUT_A_BEAT = """
import signal
from supervisor import preload, worker
preload.load_application()
signal.signal(signal.SIGTERM, lambda *_: (print("asked to stop"), exit(7)))
worker.Service.start = lambda service: service.sync()
with worker._running_beat():
    signal.pause()
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SECRET_KEY": "for the test", "STEPMARK_DATA": str(folder)}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)


def test_work_comes_up_without_anything_having_been_set_up(tmp_path: Path) -> None:
    done = run(BEFORE_IT_WORKS, tmp_path)
    assert done.returncode == 0, done.stderr


def test_work_ends_with_its_beat(tmp_path: Path) -> None:
    """A worker without a beat would sweep nothing, and nobody would see it."""
    done = run(WITHOUT_A_BEAT, tmp_path)
    assert (done.returncode, done.stdout) == (7, "asked to stop\n"), done.stderr
