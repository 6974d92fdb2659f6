"""The parent guard, for kernels that do not end a child with its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from host import processes
from tests.supervisor import platform_process

# A parent that starts a guard as on such a kernel, and then prints the grandchild's process id.
PARENT = """
import os, subprocess, sys, time
guard = "import sys; from host import processes; sys.exit(processes.guard_command({}, ['sleep', '600']))"
child = subprocess.Popen([sys.executable, "-c", guard.format(os.getpid())], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.fault
def test_watch_parent_ends_its_program_when_the_parent_is_killed() -> None:
    root = Path(processes.__file__).resolve().parents[1]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(root)}
    ) as parent:
        assert parent.stdout
        guard = int(parent.stdout.readline())
        ends = time.monotonic() + platform_process.PATIENCE
        while "sleep" not in platform_process.commands_of_group(guard):
            assert time.monotonic() < ends
            time.sleep(0.05)
        os.kill(parent.pid, signal.SIGKILL)
    while platform_process.commands_of_group(guard):
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.mark.fault
def test_library_works_after_its_pages_were_dropped() -> None:
    script = "import decimal; from host import processes; processes.page_out_files(); print(decimal.Decimal(4).sqrt())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"
