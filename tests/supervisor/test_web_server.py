"""The web server's process is replaced when it hangs, not only when it dies."""

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from supervisor.fork import fork_process
from supervisor.web_server import WebProcess

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # because of pytest's threads


def sleep_long() -> int:
    time.sleep(60)
    return 0


@pytest.mark.parametrize(("silence", "ends_by"), [(61.0, signal.SIGKILL), (30.0, signal.SIGTERM)])
def test_process_without_a_sign_of_life_is_killed(tmp_path: Path, silence: float, ends_by: int) -> None:
    with (tmp_path / "log").open("wb") as output:
        pid = fork_process("web", sleep_long, output=output.fileno()).pid
    worker = SimpleNamespace(tmp=SimpleNamespace(last_update=lambda: time.monotonic() - silence))
    process = WebProcess(pid, worker, 60.0)
    assert process.poll() is None
    time.sleep(0.05)  # a process that is to live is still there
    if ends_by == signal.SIGTERM:
        assert process.poll() is None
        os.kill(pid, signal.SIGTERM)
    assert process.wait(10) == -ends_by
