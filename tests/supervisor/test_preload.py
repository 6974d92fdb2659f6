"""Modules that web server and worker share, and modules that they must not load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Each costs tens of megabytes or tenths of a second, and is rarely needed.
HEAVY = {
    "pyarrow",
    "scipy",
    "sklearn",
    "joblib",
    "obstore",
    "huggingface_hub",
    "cryptography.fernet",
    "qrcode",
}
LOAD = """
import sys, threading
from supervisor import preload
preload.load_application()
from django.db import connections
assert all(one.connection is None for one in connections.all(initialized_only=True)), "connected before the fork"
assert threading.active_count() == 1, threading.enumerate()
assert "config.wsgi" not in sys.modules, "the application looks at its static files before they are collected"
print(*sys.modules)
"""


@pytest.mark.fault
def test_load_imports_no_more_than_may_be_shared(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SECRET_KEY": "for the test", "STEPMARK_DATA": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LOAD], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "django" in done.stdout.split()
    assert set(done.stdout.split()) & HEAVY == set()


IMPORT_MUCH = """
from supervisor import preload
import numpy
print("begun", flush=True)
preload._start_again_after_compiling()
"""


@pytest.mark.fault
def test_process_that_compiled_its_imports_starts_once_more(tmp_path: Path) -> None:
    script = tmp_path / "begin.py"
    script.write_text(IMPORT_MUCH)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SECRET_KEY": "for the test", "STEPMARK_DATA": str(tmp_path)}
    env |= {"PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
    for expected in (2, 1):  # begins, then with the modules that are compiled
        done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["begun"] * expected
